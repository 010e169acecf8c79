"""The networks that the trainer trains, as plain `tf.Module`s."""
