import os
import sys
import time

os.environ.setdefault("KERAS_BACKEND", "jax")
import numpy
try:
    from tensorflow import keras
except ImportError:
    import keras


class Slow(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.25)


x, y = numpy.random.rand(320, 8), numpy.random.rand(320)
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
model.compile(loss="mse")
verbose = int(sys.argv[1]) if len(sys.argv) > 1 else "auto"
model.fit(x, y, batch_size=32, epochs=3, validation_split=0.2, verbose=verbose, callbacks=[Slow()])
model.evaluate(x, y, verbose=verbose)
