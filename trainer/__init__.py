"""Trainers that eat datasets: a real Inception v3 and an emulated accelerator, with one interface."""
