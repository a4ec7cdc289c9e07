"""
A report
========

``write_report`` makes one page of a training: how good, how long, which rows were wrong.
It holds its pictures and can be sent by mail.
"""

import html
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from widemargin import SVC
from widemargin.report import write_report

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
clf = SVC().fit(X_train, y_train)
with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "wine.html"
    write_report(page, clf, X_train, y_train, test=(X_test, y_test), title="Wine")
    text = page.read_text(encoding="utf-8")
print(f"{len(text) // 1024} KiB")

# %%
# The columns of this set have very different scales, and the report says so. This is the page:


class Page:
    """Shows a page inside of another one."""

    def _repr_html_(self):
        inner = html.escape(text, quote=True)
        style = "width: 100%; height: 36em; border: 1px solid #888"
        return f'<iframe title="The report" style="{style}" srcdoc="{inner}"></iframe>'


Page()

# %%
# What the advice is about: the largest column is the whole distance between two wines.

figure, axis = plt.subplots(figsize=(7, 4))
axis.barh(load_wine().feature_names, np.std(X_train, axis=0))
axis.set(xscale="log", xlabel="standard deviation of the column")
figure.tight_layout()
