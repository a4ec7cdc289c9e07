"""What the help of the commands ends with: examples, formats and exit status."""

EXIT_STATUS = """\
See widemargin COMMAND --help for options and examples.

exit status:
  0    solved, or done
  1    the model is usable, but not as good as asked (says how far), or Ctrl-C ended
       its training
  2    bad usage or input (one line says what)
  130  Ctrl-C before there was a model, or while testing or reporting on it
  141  standard output was closed before all was said
"""
TRAIN_EXAMPLES = """\
examples, with files of yours:
  widemargin train adult.svm adult.wm --test adult.test.svm
  widemargin train adult.svm.xz adult.wm -C 10 --tol 1e-6 --report adult.html
  widemargin train adult.svm adult.wm --kernel rbf --gamma 0.03
  widemargin train adult.svm best.wm --kernel rbf --cv 5 --C 0.1,1,10 --gamma 0.01,0.1
  widemargin train raw.svm scaled.wm --kernel rbf --scale minmax
  widemargin train adult.svm small.wm --kernel rbf --gamma 0.03 --budget 500
  widemargin train adult.svm fast.wm --kernel rbf --gamma 0.03 --rank 300
  widemargin train people.parquet p.wm --label income --test new.parquet
  widemargin train prices.svm prices.wm --type regress --kernel rbf --epsilon 0.5
  widemargin train X.npy m.wm --label y.npy --time-limit 600 --json
  widemargin train shards big.wm --loss squared_hinge --memory-limit 4G
  widemargin train shards big.wm --cluster tcp://scheduler:8786

The data are svmlight/LIBSVM text ("label index:value ...") or a .csv table, plain or
compressed with gzip, bzip2 or xz; a .npy matrix; a .parquet file, with numbers,
words or categories in its columns; or a folder of X-*.npy (and y-*.npy) or of
*.parquet. All but text stay in their files and may be larger than memory. Test data in
CSV and Parquet are matched by the names of the columns.

Ctrl-C stops, and saves the best model so far with its gap (status 1); the test file is
not scored. Before there is a model, or the second time, it ends with status 130 and no
model.
"""
PREDICT_EXAMPLES = """\
examples, with files of yours:
  widemargin predict adult.wm new.svm > labels.txt
  widemargin predict adult.wm new.svm --scores --output scores.txt
  widemargin predict p.wm new.parquet

The data are of the kinds that train takes. Features of svmlight text and columns with
names that the model has never seen are ignored, and standard error says so. A model of
a table without names takes as many columns as it was trained with.
"""
INSPECT_EXAMPLES = """\
examples, with files of yours:
  widemargin inspect adult.wm
  widemargin inspect adult.wm --json
"""
CONVERT_EXAMPLES = """\
examples, with files of yours:
  widemargin convert adult.svm adult.svm.xz        data: compress, or unpack
  widemargin convert zero_based.svm one_based.svm  data: indices from 0 to from 1
  widemargin convert adult.wm adult.model          model: LIBLINEAR's text, and back
  widemargin convert rbf.wm rbf.model              model: LIBSVM's text, and back
  widemargin convert svm-train.model adult.wm      model: what svm-train wrote
  widemargin convert adult.wm adult.onnx           model: ONNX

Data go to .svm, .svmlight, .libsvm, .txt or a name without an ending, each plain or
followed by .gz, .bz2 or .xz; query ids (qid) are kept.
"""
COMPLETION_EXAMPLES = """\
examples:
  widemargin completion bash > ~/.local/share/bash-completion/completions/widemargin
  widemargin completion zsh > ~/.widemargin-completion   (source it in ~/.zshrc)
"""
GENERATE_EXAMPLES = """\
examples:
  widemargin generate ndc big.parquet --rows 7000000 --features 32 --seed 1
  widemargin generate ndc test.parquet --rows 70000 --features 32 --seed 1 --part test
  widemargin generate ndc shards --rows 7000000 --dtype float32
  widemargin generate ndc small.svm.gz --rows 10000 --expand 1

ndc: normally distributed clusters, rows of integers around random centers, labeled 1
or -1 by the side of a plane that their center is on. A million rows take some seconds,
as compressed text a minute; memory does not grow with them. The same seed gives the
same rows, and fewer rows are the first of more.

FILE ends in .parquet (columns x0, x1, ... and label), or in .svm, .svmlight, .libsvm or
.txt, perhaps followed by .gz, .bz2 or .xz (svmlight text), or has no ending: a new
folder of shards X-00000.npy, y-00000.npy, ... of a million rows each.
"""
