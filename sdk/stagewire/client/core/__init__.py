"""What both clients decide alike: messages, order, credit, values, failures, repetition.

Pure: no call, thread, loop or clock. A client around it moves bytes and waits.
"""
