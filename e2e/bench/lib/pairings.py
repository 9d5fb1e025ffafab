"""How soon kernels can be done that run in pairs, if it is known how fast both get on: the best plan, and FlexSched's rule. Times are in
seconds; a kernel's work is the time that it takes alone. Pure."""

CLOSE = 1e-9


def pivot(table, basis, row, column):
    """One step of the simplex algorithm: @column takes the place of what @row has in the basis."""
    factor = table[row][column]
    table[row] = [value / factor for value in table[row]]
    for i, line in enumerate(table):
        if i != row and line[column]:
            table[i] = [value - line[column] * at_row for value, at_row in zip(line, table[row])]
    basis[row] = column


def least_time(work, sets):
    """The shortest time in which all @work (by name) can be done. At each moment one kernel runs alone, or one of @sets: the rates, by
    name, of kernels that run at the same time. A kernel may be interrupted. The simplex algorithm with Bland's rule: it begins with the
    kernels in sequence, and takes a set as long as that saves time."""
    names = list(work)
    columns = [{name: 1.0} for name in names] + list(sets)
    table = [[column.get(name, 0.0) for column in columns] + [work[name]] for name in names]
    basis = list(range(len(names)))
    while True:
        saves = (j for j in range(len(columns)) if sum(line[j] for line in table) > 1 + CLOSE)
        column = next(saves, None)
        if column is None:
            return sum(line[-1] for line in table)
        rows = [i for i, line in enumerate(table) if line[column] > CLOSE]
        pivot(table, basis, min(rows, key=lambda i: (table[i][-1] / table[i][column], basis[i])), column)


def time_by_rule(first, work, kinds, rates, chance):
    """The time that FlexSched's rule takes: beside the kernel that runs comes one of another kind, whichever, or any if there is none.
    Both run until one is done. @rates: of a pair, by frozenset of its names; the search for them takes no time."""
    left, now, runs = dict(work), 0.0, [first]
    waits = [name for name in work if name != first]
    while runs or waits:
        if not runs:
            runs.append(waits.pop(0))
        if waits and len(runs) < 2:
            partner = chance.choice([name for name in waits if kinds[name] != kinds[runs[0]]] or waits)
            waits.remove(partner)
            runs.append(partner)
        rate = rates[frozenset(runs)] if len(runs) > 1 else {runs[0]: 1.0}
        passed = min(left[name] / rate[name] for name in runs)
        now += passed
        left |= {name: left[name] - passed * rate[name] for name in runs}
        runs = [name for name in runs if left[name] > CLOSE]
    return now
