"""The watcher that ends a rented machine when its run is over, stuck, or at its limit of time or cost."""
