import { ExpressionError } from './values.ts';

/**
 * Maximum work of an expression, in steps. A step is one operation, or one read of 64 characters or 2 elements. A step
 * takes about 100 ns, so an expression takes at most about 5 ms, and all expressions of an agent at most 100 ms.
 */
export const maximumSteps = 50_000;
export const maximumStepsOfAgent = 1_000_000;

const tooMuchForAgent =
  'the expressions of the agent together do more work than is allowed (100 ms): shorten the lists';

/** Counts the work of an agent's expressions. Does not measure time, because time depends on the machine's load. */
export class Meter {
  #ofAgent = maximumStepsOfAgent;
  #left = maximumSteps;
  #isLimitOfAgent = false;
  #refusal: string | undefined;
  /** Operators that ignore errors may cause it thousands of times, and the stack of a new error takes microseconds. */
  #exceeded: ExpressionError | undefined;

  /** Starts counting for an expression. */
  begin(): void {
    this.#isLimitOfAgent = this.#ofAgent < maximumSteps;
    this.#left = Math.min(maximumSteps, this.#ofAgent);
    this.#refusal = undefined;
    this.#exceeded = undefined;
  }

  /**
   * Aborts the expression.
   * @throws ExpressionError always; `fault` contains the reason if an operator such as `||` ignores the error
   */
  refuse(reason: string): never {
    this.#refusal = reason;
    throw new ExpressionError(reason);
  }

  /**
   * Charges steps before they run.
   * @throws ExpressionError if no steps are left, even if an operator such as `||` has already ignored this error
   */
  spend(steps: number): void {
    this.#ofAgent -= Math.min(steps, Math.max(this.#left, 0));
    this.#left -= steps;
    if (this.#left >= 0) return;
    this.#exceeded ??= new ExpressionError(this.fault ?? '');
    throw this.#exceeded;
  }

  /**
   * Counts steps outside an expression, such as those of a loop in a template.
   * @returns the reason if the agent has no steps left
   */
  count(steps: number): string | undefined {
    this.#ofAgent -= steps;
    return this.#ofAgent < 0 ? tooMuchForAgent : undefined;
  }

  /** The reason if the expression was refused, or exceeded the limit. */
  get fault(): string | undefined {
    if (this.#refusal !== undefined) return this.#refusal;
    if (this.#left >= 0) return undefined;
    return this.#isLimitOfAgent
      ? tooMuchForAgent
      : 'the expression does more work than is allowed (5 ms): shorten its lists and texts';
  }
}

const sizes = new WeakMap<object, number>();

/** Returns the number of steps for reading a value, including everything in it. */
export function stepsOf(value: unknown): number {
  if (typeof value === 'string') return value.length >> 6;
  if (typeof value !== 'object' || value === null) return 0;
  if (value instanceof Uint8Array) return value.length >> 6;
  return elementsOf(value) >> 1;
}

function elementsOf(value: object): number {
  const known = sizes.get(value);
  if (known !== undefined) return known;
  let elements = 0;
  const add = (item: unknown): void => {
    elements += 1;
    if (typeof item === 'string') elements += item.length >> 5;
    else if (typeof item === 'object' && item !== null) elements += elementsOf(item);
  };
  if (Array.isArray(value)) value.forEach(add);
  else if (value instanceof Map) value.forEach(add);
  else if (value.constructor === Object) Object.values(value).forEach(add);
  // An empty list may be a list that a macro is about to fill.
  if (elements > 0) sizes.set(value, elements);
  return elements;
}
