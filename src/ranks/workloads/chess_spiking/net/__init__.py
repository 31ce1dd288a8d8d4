"""The nets of chess-spiking: leaky integrate-and-fire layers, the residual net, the origin's net."""
