#include "certificates.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "crew.hpp"
#include "given_sums.hpp"

namespace widemargin {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// As in numerics/rounding.py: half the distance from 1 to the next number; what the bounds
// themselves lose to rounding.
constexpr double kUnit = 0x1p-53, kSlack = 1 + 1e-6;

// (3.5) in Higham 2002: the error of a sum of products, as a share of that of their absolute
// values.
double gamma(double terms) {
  const double lost = terms * kUnit;
  return lost < 1 ? lost / (1 - lost) : kInfinity;
}

// One problem. A comparison with NaN is false: it is written so that NaN passes on, or fails.
class Certified {
 public:
  Certified(const CertifiedProblems& problems, const CertifiedAnswers& answers, std::size_t t)
      : all_(problems), found_(answers), t_(t) {
    begin_ = static_cast<std::size_t>(t > 0 ? problems.end[t - 1] : 0);
    end_ = static_cast<std::size_t>(problems.end[t]);
    off_ = gamma(static_cast<double>(end_ - begin_) + 8);
    has_mass_ = !std::isnan(problems.mass[t]);
    rho_ = has_mass_ ? answers.rho[t] : 0.0;
  }

  ProvenBounds bounds() {
    add_up();
    ProvenBounds out{};
    bound_above(out);
    bound_below(out);
    if (std::isnan(out.primal)) out.primal = kInfinity;
    if (!is_feasible_ || !std::isfinite(out.dual)) out.dual = -kInfinity;
    return out;
  }

 private:
  double loss(double slack) const {
    const double positive = slack <= 0 ? 0.0 : slack;
    return all_.squared ? positive * positive : positive;
  }

  // All sums over the places.
  void add_up() {
    const double b = found_.b[t_], near = gamma(4);
    for (std::size_t i = begin_; i < end_; ++i) {
      const double c = found_.c[i], f = found_.f[i], error = found_.errors[i];
      const double y = all_.y[i], C = all_.C[i], q = all_.q[i], alpha = std::abs(c);
      if (found_.has_loss[i] != 0) {
        const double whole = f + b, slack = q + rho_ - y * whole;
        const double size = std::abs(q) + std::abs(rho_) + std::abs(f) + std::abs(whole);
        plain_ += C * loss(slack);
        losses_ += C * loss(slack + (error + near * size));
      }
      square_ += c * f, square_size_ += std::abs(c * f), square_error_ += alpha * error;
      mass_ += alpha, signed_ += c;
      linear_ += q * alpha, linear_size_ += std::abs(q * alpha);
      slope_ += alpha * (std::abs(q - y * f) + error);
      length_ += alpha * found_.length[static_cast<std::size_t>(found_.row[i])];
      if (all_.squared) ridge_ += 0.25 * alpha * (alpha / (C > 0 ? C : 1.0));
      const double most = C > 0 ? (all_.squared ? kInfinity : C) : 0.0;
      is_feasible_ = is_feasible_ && y * c >= 0 && y * c <= most;
    }
    square_error_ += off_ * square_size_;
    if (!found_.squares.empty()) take_squares();
  }

  // What is known of weights, in place of c'f. Of the scores of those that c makes only lengths
  // are.
  void take_squares() {
    const double* given = &found_.squares[4 * t_];
    primal_square_ = given[0], primal_error_ = given[1];
    square_ = given[2], square_error_ = given[3];
    slope_ = linear_size_ + length_ * std::sqrt(square_ + square_error_) * kSlack;
  }

  void bound_above(ProvenBounds& out) const {
    const bool given = !found_.squares.empty();
    const double square = given ? primal_square_ : square_;
    const double error = given ? primal_error_ : square_error_;
    const double b = found_.b[t_], losses = losses_ * (1 + off_);
    double rest = 0.5 * square;
    if (all_.intercept == 2) rest += 0.5 * b * b;
    const double pull = has_mass_ ? all_.mass[t_] * rho_ : 0.0;
    const double over = 0.5 * error * kSlack + gamma(8) * (std::abs(rest) + std::abs(pull));
    out.primal = rest - pull + over + losses;
    out.over = over + (losses - plain_);
  }

  void bound_below(ProvenBounds& out) const {
    const double total = std::abs(signed_) + off_ * mass_;
    double rest = 0.5 * square_ + ridge_;
    if (all_.intercept == 2) rest += 0.5 * total * total;
    out.under = 0.5 * square_error_ * kSlack + off_ * (linear_size_ + std::abs(rest));
    if (has_mass_)
      out.under += repair_sums();
    else if (all_.intercept == 1)
      out.under += repair(total);
    out.dual = linear_ - rest - out.under;
  }

  // What of D it costs to make y'alpha zero, which is `residual` at most: see `repair_error` of
  // numerics/rounding.py.
  double repair(double residual) const {
    if (mass_ == 0) return 0;
    if (!(residual < 0.25 * mass_)) return kInfinity;
    const double t = 2 * residual / mass_ * kSlack, length = length_ * kSlack;
    return (t * slope_ * kSlack + 0.5 * t * t * length * length) * kSlack;
  }

  // What of D it costs to make sum alpha the mass, with a free intercept in each class.
  double repair_sums() const {
    double lost = 0, moved_length = 0;
    each_sum(all_.y, begin_, end_, all_.mass[t_], all_.intercept == 1,
             [&](const std::vector<std::size_t>& own, double total) {
               auto alpha = taken(found_.c, own);
               for (auto& one : alpha) one = std::abs(one);
               const auto C = taken(all_.C, own);
               std::vector<double> moved(own.size());
               change(alpha, C, total, !all_.squared, moved);
               for (std::size_t k = 0; k < own.size(); ++k) {
                 if (moved[k] == 0) continue;
                 const std::size_t i = own[k];
                 const double slope =
                     std::abs(all_.q[i] - all_.y[i] * found_.f[i]) + found_.errors[i];
                 lost += moved[k] * slope;
                 if (all_.squared) lost += moved[k] * ((2 * alpha[k] + moved[k]) / (4 * C[k]));
                 moved_length += moved[k] * found_.length[static_cast<std::size_t>(found_.row[i])];
               }
             });
    const double all = (lost + 0.5 * moved_length * moved_length) * kSlack;
    return std::isnan(all) ? kInfinity : all;
  }

  const CertifiedProblems& all_;
  const CertifiedAnswers& found_;
  std::size_t t_, begin_, end_;
  double off_, rho_;
  bool has_mass_, is_feasible_ = true;
  double plain_ = 0, losses_ = 0;  // at the slacks, and at the largest that these can be
  double square_ = 0, square_size_ = 0, square_error_ = 0;  // c'f
  double primal_square_ = 0, primal_error_ = 0;
  double mass_ = 0, signed_ = 0;         // sums of alpha, and of y alpha
  double linear_ = 0, linear_size_ = 0;  // q'alpha
  double slope_ = 0, length_ = 0, ridge_ = 0;
};

}  // namespace

void certify_many(const CertifiedProblems& problems, const CertifiedAnswers& answers,
                  std::span<ProvenBounds> out) {
  for (std::size_t t = 0; t < out.size(); ++t) out[t] = Certified(problems, answers, t).bounds();
}

namespace {

// work(i) for the places from `begin` to `end` whose c is not zero, in their order. They are found
// without a branch: too many would be foreseen wrongly.
template <class Work>
void each_support(std::span<const double> c, std::size_t begin, std::size_t end, const Work& work) {
  std::array<std::size_t, 256> found;
  while (begin < end) {
    const std::size_t stop = std::min(end, begin + found.size());
    std::size_t count = 0;
    for (; begin < stop; ++begin) found[count] = begin, count += !(std::abs(c[begin]) <= 0) ? 1 : 0;
    for (std::size_t k = 0; k < count; ++k) work(found[k]);
  }
}

// Errors of sum_j c_j k_ij over the places j of one part.
class PartErrors {
 public:
  PartErrors(const KnownValues& values, const SumError& sum, std::span<const std::int64_t> row,
             std::span<const double> c, std::size_t begin, std::size_t end)
      : values_(values) {
    double total = 0, lengths = 0, terms = 0, weights = 0, used = 0;
    each_support(c, begin, end, [&](std::size_t i) {
      const auto r = values.place_of(row[i]);
      const double size = std::abs(c[i]) * values.s[r];
      total += size, lengths += size * values.h[r], terms += 1;
      weights += std::abs(c[i]), used += values.s[r];
    });
    const double off = sum.base + gamma(sum.each * terms + sum.more);
    is_zero_ = total == 0;
    known_ = ((off + values.eps) * total + values.eps * lengths) * kSlack;
    each_ = values.eps * total * kSlack;
    lost_ = sum.lost * (weights + terms) * kSlack, more_ = sum.lost * used * kSlack;
  }

  double at(std::int64_t row) const {
    const auto r = values_.place_of(row);
    return of(values_.s[r], values_.h[r]);
  }
  // Of a row with these; it grows with both.
  double of(double s, double h) const {
    const double error = is_zero_ ? 0.0 : (h * each_ + known_) * s;
    return error + (lost_ + more_ * s);
  }

 private:
  const KnownValues& values_;
  bool is_zero_;
  double known_, each_, lost_, more_;
};

std::size_t begin_of(std::span<const std::int64_t> end, std::size_t t) {
  return static_cast<std::size_t>(t > 0 ? end[t - 1] : 0);
}

std::size_t total_of(std::span<const std::int64_t> end) { return begin_of(end, end.size()); }

// Problems that a thread takes at a time, and places that it looks at without a branch.
constexpr std::size_t kSome = 16, kAtOnce = 256;

double largest_of(std::span<const double> values) {
  double most = 0;
  for (const double value : values)
    most = value > most || std::isnan(value) ? value : most;  // NaN, if there is one
  return most;
}

// work(t) for all parts.
template <class Work>
void each_part(std::size_t parts, std::size_t threads, const Work& work) {
  const std::function<bool()> never = [] { return false; };
  Crew(threads, never).run((parts + kSome - 1) / kSome, [&](std::size_t task, bool) {
    for (std::size_t t = task * kSome; t < std::min(parts, (task + 1) * kSome); ++t) work(t);
  });
}

// work(t, begin, end, errors, most) for all problems; no row has a larger error than `most`.
template <class Work>
void each_problem(const KnownScores& scores, std::size_t threads, const Work& work) {
  const double s = largest_of(scores.values.s), h = largest_of(scores.values.h);
  each_part(scores.end.size(), threads, [&](std::size_t t) {
    const std::size_t begin = begin_of(scores.end, t);
    const auto end = static_cast<std::size_t>(scores.end[t]);
    const PartErrors errors(scores.values, scores.sum, scores.row, scores.c, begin, end);
    work(t, begin, end, errors, errors.of(s, h));
  });
}

}  // namespace

void errors_by_part(const KnownValues& values, const SumError& sum,
                    std::span<const std::int64_t> end, std::span<const std::int64_t> row,
                    std::span<const double> c, std::span<double> out) {
  for (std::size_t t = 0; t < end.size(); ++t) {
    const std::size_t begin = begin_of(end, t), last = static_cast<std::size_t>(end[t]);
    const PartErrors errors(values, sum, row, c, begin, last);
    for (std::size_t i = begin; i < last; ++i) out[i] = errors.at(row[i]);
  }
}

namespace {

// Whether places of a problem have no loss by their scores: as plain numbers, for the compiler.
struct Margins {
  const double *y, *q, *f;
  double b, rho, near;

  bool are_safe(std::size_t i, double error) const {
    const double margin = y[i] * (f[i] + b);
    const double size = std::abs(q[i]) + std::abs(rho) + std::abs(f[i]) + std::abs(b);
    return (margin >= q[i] + rho + (error + near * size)) & (std::abs(f[i]) < kInfinity);
  }
};

// Nothing is known.
constexpr ProvenBounds kUnknown{kInfinity, -kInfinity, 0, 0};

// What is known of problem t by the scores of some of its places, from `begin` on; other places add
// nothing to the bounds.
class ByScores {
 public:
  ByScores(const CertifiedProblems& problems, const KnownScores& scores)
      : problems_(problems), scores_(scores), lengths_(scores.values.s) {}

  ProvenBounds bounds(std::size_t t, std::size_t begin, std::span<const std::uint32_t> own,
                      const PartErrors& errors) {
    const std::size_t m = own.size();
    row_.resize(m), has_loss_.resize(m, 1);
    for (auto* const numbers : {&y_, &C_, &q_, &c_, &f_, &errors_}) numbers->resize(m);
    for (std::size_t k = 0; k < m; ++k) {
      const std::size_t i = begin + own[k];
      y_[k] = problems_.y[i], C_[k] = problems_.C[i], q_[k] = problems_.q[i];
      c_[k] = scores_.c[i], f_[k] = scores_.f[i], row_[k] = scores_.row[i];
      errors_[k] = errors.at(row_[k]);
    }
    const std::array end{static_cast<std::int64_t>(m)};
    const std::array rho{0.0};
    const CertifiedProblems one{
        end, y_, C_, q_, problems_.mass.subspan(t, 1), problems_.squared, problems_.intercept};
    return Certified(one,
                     {c_, f_, errors_, has_loss_, row_, lengths_, scores_.b.subspan(t, 1), rho, {}},
                     0)
        .bounds();
  }

 private:
  const CertifiedProblems& problems_;
  const KnownScores& scores_;
  std::span<const double> lengths_;
  std::vector<double> y_, C_, q_, c_, f_, errors_;
  std::vector<std::uint8_t> has_loss_;
  std::vector<std::int64_t> row_;
};

// Whether the gap is that share of the objective; false where there is no bound.
bool is_within(const ProvenBounds& bounds, double share) {
  return std::isfinite(bounds.primal) &&
         bounds.primal - bounds.dual <= share * std::abs(bounds.primal);
}

}  // namespace

FoundPlaces find_places(const CertifiedProblems& problems, const KnownScores& scores,
                        std::span<const double> rhos, const ExactSums& sums, bool are_all_wanted,
                        double enough, std::span<ProvenBounds> known, std::size_t threads) {
  const std::size_t parts = scores.end.size();
  FoundPlaces out;
  out.end = Room<std::int64_t>(parts), out.support_end = Room<std::int64_t>(parts);
  const Room<std::uint32_t> found(scores.row.size());  // those of a problem at its beginning
  each_problem(
      scores, threads,
      [&](std::size_t t, std::size_t begin, std::size_t end, const PartErrors& errors,
          double most) {
        const double rho = std::isnan(problems.mass[t]) ? 0.0 : rhos[t];
        const Margins margins{
            problems.y.data(), problems.q.data(), scores.f.data(), scores.b[t], rho, gamma(8)};
        const double *const c = scores.c.data(), *const C = problems.C.data();
        std::uint32_t* const own = &found[begin];
        std::size_t some = 0, left = 0, support = 0;
        std::array<double, kAtOnce> counts;  // numbers as the others: loops are vectors
        if (are_all_wanted) most = std::numeric_limits<double>::quiet_NaN();
        for (std::size_t first = begin; first < end; first += kAtOnce) {
          const std::size_t count = std::min(end - first, kAtOnce);
          for (std::size_t k = 0; k < count; ++k) {
            const std::size_t i = first + k;
            counts[k] = (c[i] != 0) | ((C[i] > 0) & !margins.are_safe(i, most)) ? 1.0 : 0.0;
          }
          for (std::size_t k = 0; k < count; ++k) {
            own[some] = static_cast<std::uint32_t>(first + k - begin);
            some += counts[k] > 0 ? 1 : 0;
          }
        }
        for (std::size_t k = 0; k < some; ++k) {
          const std::size_t i = begin + own[k];
          const bool may_be_safe = c[i] == 0 && !are_all_wanted;
          if (may_be_safe && margins.are_safe(i, errors.at(scores.row[i]))) continue;
          own[left++] = own[k];
          support += sums.c[i] != 0 ? 1 : 0;
        }
        known[t] = kUnknown;
        if (enough > 0 && std::isnan(problems.mass[t])) {
          const auto bounds = ByScores(problems, scores).bounds(t, begin, {own, left}, errors);
          if (is_within(bounds, enough)) known[t] = bounds, left = support = 0;
        }
        out.end[t] = static_cast<std::int64_t>(left);
        out.support_end[t] = static_cast<std::int64_t>(support);
      });
  out.make_room();
  each_part(parts, threads, [&](std::size_t t) {
    const std::size_t begin = begin_of(scores.end, t), first = begin_of(out.end, t),
                      left = static_cast<std::size_t>(out.end[t]) - first;
    const std::size_t support = begin_of(out.support_end, t);
    std::size_t s = support;
    for (std::size_t j = 0; j < left; ++j) {
      const std::size_t i = begin + found[begin + j], k = first + j;
      out.at[k] = static_cast<std::int64_t>(i), out.row[k] = scores.row[i];
      out.y[k] = problems.y[i], out.C[k] = problems.C[i], out.q[k] = problems.q[i];
      out.c[k] = scores.c[i];
      if (sums.c[i] != 0) out.support[s] = scores.row[i], out.weight[s++] = sums.c[i];
    }
    const PartErrors errors(sums.values, sums.error, out.support, out.weight, support, s);
    for (std::size_t k = first; k < first + left; ++k) out.errors[k] = errors.at(out.row[k]);
  });
  return out;
}

void prove_places(const CertifiedProblems& problems, const KnownScores& scores,
                  std::span<const double> rho, const ExactSums& sums, const FoundPlaces& places,
                  std::span<const double> exact, std::span<ProvenBounds> out) {
  const auto lengths = sums.values.s;
  const std::vector<std::uint8_t> every(places.row.size(), 1);
  const CertifiedProblems found{places.end,    places.y,         places.C,          places.q,
                                problems.mass, problems.squared, problems.intercept};
  const CertifiedAnswers by_found{places.c, exact,    places.errors, every, places.row,
                                  lengths,  scores.b, rho,           {}};
  std::vector<double> f, errors;
  std::vector<std::uint8_t> has_loss;
  for (std::size_t t = 0; t < out.size(); ++t) {
    if (std::isfinite(out[t].primal)) continue;
    if (std::isnan(problems.mass[t])) {
      out[t] = Certified(found, by_found, t).bounds();
      continue;
    }
    if (f.empty()) {
      f.assign(scores.f.begin(), scores.f.end());
      errors.resize(f.size()), has_loss.resize(f.size());
      errors_by_part(scores.values, scores.sum, scores.end, scores.row, scores.c, errors);
      for (std::size_t k = 0; k < exact.size(); ++k) {
        const auto i = static_cast<std::size_t>(places.at[k]);
        f[i] = exact[k], errors[i] = places.errors[k], has_loss[i] = 1;
      }
    }
    const CertifiedAnswers by_all{scores.c, f,        errors, has_loss, scores.row,
                                  lengths,  scores.b, rho,    {}};
    out[t] = Certified(problems, by_all, t).bounds();
  }
}

void FoundPlaces::make_room() {
  for (auto* const ends : {&end, &support_end})
    std::partial_sum(&(*ends)[0], &(*ends)[0] + ends->size(), &(*ends)[0]);
  const std::size_t count = total_of(end), vectors = total_of(support_end);
  for (auto* const index : {&at, &row}) *index = Room<std::int64_t>(count);
  for (auto* const numbers : {&y, &C, &q, &c, &errors}) *numbers = Room<double>(count);
  support = Room<std::int64_t>(vectors), weight = Room<double>(vectors);
}

namespace {

// Problems of one fold.
class Fold {
 public:
  Fold(const FoldAnswers& answers, const FoldSums& out, std::size_t fold)
      : all_(answers), out_(out), fold_(fold), first_(fold * answers.values.s.size()) {}

  void add_coefficients() const {
    for (std::size_t k = 0; k < all_.end.size(); ++k) {
      const Part part = part_of(k);
      const std::int64_t* sum = &out_.sum[2 * k];
      for (std::size_t C = 0; C < all_.Cs; ++C) {
        const auto c = of(part, C, all_.c);
        each_support(c, 0, c.size(), [&](std::size_t i) {
          const std::size_t own = row_of(part, i) * out_.sums;
          const auto at = own + static_cast<std::size_t>(sum[c[i] > 0 ? 0 : 1]);
          out_.coefficients[at * all_.Cs + C] += c[i];
        });
      }
    }
  }

  void count_sides() const {
    std::vector<std::size_t> held;
    for (std::size_t k = 0; k < all_.end.size(); ++k) {
      const Part part = part_of(k);
      held.clear();
      for (std::size_t i = 0; i < part.rows.size(); ++i)
        if (all_.weights[row_of(part, i)] == 0) held.push_back(i);
      for (std::size_t C = 0; C < all_.Cs; ++C) count_sides(part, held, C);
    }
  }

 private:
  // A binary problem: its rows and labels, the first of its problems, and where places of this
  // begin.
  struct Part {
    std::span<const std::int64_t> rows;
    std::span<const double> y;
    std::size_t t, begin;
  };

  Part part_of(std::size_t k) const {
    const std::size_t begin = begin_of(all_.end, k), before = k * all_.folds + fold_;
    const std::size_t size = static_cast<std::size_t>(all_.end[k]) - begin;
    return {all_.row.subspan(begin, size), all_.y.subspan(begin, size), before * all_.Cs,
            (begin * all_.folds + size * fold_) * all_.Cs};
  }
  // Numbers of the places, for one C.
  std::span<const double> of(const Part& part, std::size_t C,
                             std::span<const double> numbers) const {
    return numbers.subspan(part.begin + C * part.rows.size(), part.rows.size());
  }
  // The row of a place, among those of all folds.
  std::size_t row_of(const Part& part, std::size_t i) const {
    return first_ + static_cast<std::size_t>(part.rows[i]);
  }

  void count_sides(const Part& part, std::span<const std::size_t> held, std::size_t C) const {
    const auto c = of(part, C, all_.c), scores = of(part, C, all_.f);
    const PartErrors errors(all_.values, all_.error, part.rows, c, 0, c.size());
    const double b = all_.b[part.t + C], near = gamma(2);
    for (const std::size_t i : held) {
      const double f = scores[i], margin = part.y[i] * (f + b);
      const double off = errors.at(part.rows[i]) + near * (std::abs(f) + std::abs(b));
      const std::size_t at = row_of(part, i) * all_.Cs + C;
      out_.wins[at] += margin > off ? 1 : 0;
      out_.losses[at] += margin < -off ? 1 : 0;
    }
  }

  const FoldAnswers& all_;
  const FoldSums& out_;
  std::size_t fold_, first_;
};

}  // namespace

void keep_answers(const FoldAnswers& answers, std::size_t threads, const FoldSums& out) {
  const std::function<bool()> never = [] { return false; };
  const std::size_t folds = answers.folds, tasks = out.wins.empty() ? folds : 2 * folds;
  // No two tasks add to the same number.
  Crew(threads, never).run(tasks, [&](std::size_t task, bool) {
    const Fold fold(answers, out, task % folds);
    task < folds ? fold.add_coefficients() : fold.count_sides();
  });
}

}  // namespace widemargin
