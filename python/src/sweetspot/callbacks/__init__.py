"""Callbacks for training frameworks, one module for each: `lightning`, `transformers` and `keras`.

Each logs the energy of every epoch in the trainer's own log (`energy_j`, `average_power_w`), and reports epochs, training
steps, items and the accuracy to the tool. A framework is imported by its module alone.
"""
