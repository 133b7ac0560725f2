"""Trains a small network with Keras, and logs the energy of each epoch.

    KERAS_BACKEND=torch sweetspot simulate --gpu v100 -- python examples/callbacks/keras_train.py

The callback takes two lines, marked below.
"""

import argparse
import json

import keras
import numpy

from sweetspot.callbacks.keras import Sweetspot  # the callback, 1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--samples", type=int, default=8000)
    parser.add_argument("--width", type=int, default=512)
    args = parser.parse_args()

    keras.utils.set_random_seed(1)
    inputs = numpy.random.default_rng(1).standard_normal((args.samples, 64)).astype("float32")
    labels = (inputs[:, 0] > 0).astype("int32")
    hidden = [keras.layers.Dense(args.width, activation="relu") for _ in range(2)]
    model = keras.Sequential([*hidden, keras.layers.Dense(2, activation="softmax")])
    model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
    history = model.fit(
        inputs,
        labels,
        batch_size=64,
        epochs=args.epochs,
        validation_split=0.1,
        verbose=2,
        callbacks=[Sweetspot(items=64)],  # the callback, 2
    )
    print(json.dumps(history.history))


if __name__ == "__main__":
    main()
