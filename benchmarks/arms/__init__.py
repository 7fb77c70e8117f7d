"""What runs in the processes of the arms, and measures there."""
