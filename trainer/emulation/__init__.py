"""An accelerator that is not there: step times of real ones, and a device that holds them."""
