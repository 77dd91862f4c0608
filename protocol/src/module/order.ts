export type Order =
  | { readonly ok: true; readonly order: readonly number[] }
  /** A cycle: the item at each index depends on the item at the next index, and the last item on the first. */
  | { readonly ok: false; readonly cycle: readonly number[] };

/**
 * Sorts resources into their execution order: the declaration order, changed only where dependencies require it. Always
 * continues with the first declared resource that is ready, so the result is the lexicographically smallest valid
 * order.
 *
 * @param dependencies for each index, the indices that must come before it; may contain duplicates
 */
export function stableOrder(dependencies: readonly (readonly number[])[]): Order {
  const waitingFor = new Int32Array(dependencies.length);
  const dependents: number[][] = dependencies.map(() => []);
  dependencies.forEach((needed, index) => {
    for (const dependency of new Set(needed)) {
      waitingFor[index] = (waitingFor[index] as number) + 1;
      dependents[dependency]?.push(index);
    }
  });
  const ready = new SmallestFirst();
  waitingFor.forEach((count, index) => {
    if (count === 0) ready.push(index);
  });
  const order: number[] = [];
  for (let index = ready.pop(); index !== undefined; index = ready.pop()) {
    order.push(index);
    for (const dependent of dependents[index] as number[]) {
      const left = (waitingFor[dependent] as number) - 1;
      waitingFor[dependent] = left;
      if (left === 0) ready.push(dependent);
    }
  }
  if (order.length === dependencies.length) return { ok: true, order };
  return { ok: false, cycle: findCycle(dependencies, (index) => (waitingFor[index] as number) > 0) };
}

/** Finds a cycle by following the dependencies: every remaining index depends on another remaining index. */
function findCycle(dependencies: readonly (readonly number[])[], isLeft: (index: number) => boolean): number[] {
  const path: number[] = [];
  const positionOf = new Map<number, number>();
  let current = dependencies.findIndex((_, index) => isLeft(index));
  while (!positionOf.has(current)) {
    positionOf.set(current, path.length);
    path.push(current);
    current = (dependencies[current] as readonly number[]).find(isLeft) as number;
  }
  const cycle = path.slice(positionOf.get(current));
  // Starts with the first declared resource, so that the same error always has the same text.
  const first = cycle.indexOf(Math.min(...cycle));
  return [...cycle.slice(first), ...cycle.slice(0, first)];
}

/** A binary heap that returns the smallest index first. */
class SmallestFirst {
  readonly #heap: number[] = [];

  push(value: number): void {
    const heap = this.#heap;
    let position = heap.length;
    heap.push(value);
    while (position > 0) {
      const parent = (position - 1) >> 1;
      if ((heap[parent] as number) <= value) break;
      heap[position] = heap[parent] as number;
      position = parent;
    }
    heap[position] = value;
  }

  pop(): number | undefined {
    const heap = this.#heap;
    const top = heap[0];
    const last = heap.pop();
    if (top === undefined || last === undefined || heap.length === 0) return top;
    let position = 0;
    while (true) {
      let child = 2 * position + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && (heap[child + 1] as number) < (heap[child] as number)) child += 1;
      if ((heap[child] as number) >= last) break;
      heap[position] = heap[child] as number;
      position = child;
    }
    heap[position] = last;
    return top;
  }
}

/**
 * Describes a dependency cycle.
 * @param names its members, with the first one again at the end
 * @param circumstances a further clause, with the punctuation before it
 */
export const cycleText = (names: readonly string[], circumstances = ''): string =>
  `dependency cycle: ${names.join(' -> ')}${circumstances}; remove one of these dependencies`;
