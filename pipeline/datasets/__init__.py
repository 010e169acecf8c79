"""Tools that make, convert and check data sets in the ImageNet TFRecord schema."""
