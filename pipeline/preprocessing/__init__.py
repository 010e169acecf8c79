"""What happens to the pixels of one image: crops, resizes, flips, colours, ranges."""
