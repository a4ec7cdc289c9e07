"""
Text
====

Which library does a docstring come from? Words become columns, most of them zero, and a
linear machine is trained on the sparse matrix as it is.
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import scipy.ndimage
import scipy.signal
import scipy.sparse
import scipy.special
import scipy.stats
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split

from widemargin import LinearSVCCV

# %%
# The texts are installed already: the documentation of five modules of SciPy.

modules = (scipy.ndimage, scipy.signal, scipy.sparse, scipy.special, scipy.stats)
texts, labels = [], []
for module in modules:
    for name in module.__all__:
        text = inspect.getdoc(getattr(module, name)) or ""
        if len(text) > 100:
            texts.append(text)
            labels.append(module.__name__.removeprefix("scipy."))
print(f"{len(texts)} texts")

# %%
# ``LinearSVCCV`` chooses ``C`` by cross-validation. The names of the modules would give the
# answer away and are left out.

train, test, y_train, y_test = train_test_split(
    texts, labels, random_state=0, stratify=labels
)
words = TfidfVectorizer(sublinear_tf=True, min_df=3, stop_words=["scipy", *set(labels)])
X_train, X_test = words.fit_transform(train), words.transform(test)
clf = LinearSVCCV(Cs=[0.1, 1.0, 10.0], cv=3).fit(X_train, y_train)
print(f"{X_train.shape[1]} words, C={clf.C_:g}: {clf.score(X_test, y_test):.3f} right")

# %%
# The weights of a linear machine can be read: these words speak most for each module.

names = words.get_feature_names_out()
figure, axes = plt.subplots(1, 5, figsize=(11, 3.4))
for axis, label, weights in zip(axes, clf.classes_, clf.coef_, strict=True):
    top = np.argsort(weights)[-8:]
    axis.barh(names[top], weights[top])
    axis.set_title(label)
    axis.tick_params(labelsize=8)
figure.tight_layout()
