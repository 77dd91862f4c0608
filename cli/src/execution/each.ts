import { confirmRemoval } from '../context/confirm.ts';
import type { Context } from '../context/context.ts';
import { type Exit, exits } from '../exit.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import { explain, renderExplanation } from '../transport/explain.ts';

/**
 * Processes items one at a time, or several in parallel, and continues after a failure.
 * @param atOnce maximum number of items to process in parallel
 * @returns the exit code: success or partial failure
 * @throws the error if the only item fails
 */
export async function eachOf<T>(
  { out }: Pick<Context, 'out'>,
  items: readonly T[],
  label: (item: T) => string,
  act: (item: T) => Promise<void>,
  atOnce = 1,
): Promise<Exit> {
  let failed = 0;
  const one = async (item: T) => {
    try {
      await act(item);
    } catch (error) {
      if (items.length === 1) throw error;
      failed++;
      const explanation = explain(error);
      // Stops, because a sign-in or usage error affects all items.
      if (explanation.exit === exits.signIn || explanation.exit === exits.usage) throw error;
      out.warn(`${sanitiseLine(label(item))}:\n${renderExplanation(explanation, out.noteColor, out.verbose)}`);
    }
  };
  await inTurns(items, atOnce, one);
  if (failed === 0) return exits.done;
  return failed === items.length ? exits.failed : exits.partly;
}

/** Processes items that are known by a name, as {@link eachOf} does. */
export const eachNamed = (
  context: Pick<Context, 'out'>,
  names: readonly string[],
  act: (name: string) => Promise<void>,
): Promise<Exit> => eachOf(context, names, (name) => name, act);

/**
 * Processes several items in parallel. Starts no more items after a failure.
 * @returns the results in the order of the items
 */
export async function inTurns<T, R>(
  items: readonly T[],
  atOnce: number,
  act: (item: T, at: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  let next = 0;
  let isOver = false;
  const work = async () => {
    while (next < items.length && !isOver) {
      const at = next++;
      try {
        results[at] = await act(items[at] as T, at);
      } catch (error) {
        isOver = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, items.length) }, work));
  return results;
}

/**
 * Removes the named items one after another, after confirmation, and reports each removal.
 * @param noun the noun for the items in the question
 * @param remove removes the item with this name
 */
export async function removeEach(
  context: Pick<Context, 'out' | 'prompt'>,
  names: readonly string[],
  { yes, noun }: { yes: boolean | undefined; noun: string },
  remove: (name: string) => Promise<unknown>,
): Promise<Exit> {
  const { out } = context;
  await confirmRemoval(context, names, { yes, noun });
  const removed: string[] = [];
  const exit = await eachNamed(context, names, async (name) => {
    await remove(name);
    removed.push(name);
    out.print(`Removed ${sanitiseLine(name)}.`);
  });
  if (out.json) out.data({ removed });
  return exit;
}
