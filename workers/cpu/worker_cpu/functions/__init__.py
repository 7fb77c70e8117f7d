"""Functions that the worker ships: stages without a general executor behind them."""
