import type { Context } from './context.ts';
import { type Exit, exits } from './exit.ts';
import { explain, renderExplanation } from './explain.ts';
import { sanitiseLine } from './sanitise.ts';

/**
 * Does one thing after the other, and goes on after one that fails.
 * @returns done, or partly failed; one thing alone fails as itself
 */
export async function eachOf<T>(
  { out }: Pick<Context, 'out'>,
  items: readonly T[],
  label: (item: T) => string,
  act: (item: T) => Promise<void>,
): Promise<Exit> {
  let failed = 0;
  for (const item of items) {
    try {
      await act(item);
    } catch (error) {
      if (items.length === 1) throw error;
      failed++;
      const told = explain(error);
      // What concerns all of them stops here.
      if (told.exit === exits.signIn || told.exit === exits.usage) throw error;
      out.warn(`${sanitiseLine(label(item))}:\n${renderExplanation(told, out.noteColor, out.verbose)}`);
    }
  }
  if (failed === 0) return exits.done;
  return failed === items.length ? exits.failed : exits.partly;
}

/**
 * Removes what is named, one after the other, and says so of each.
 * @param remove removes the one of that name
 */
export async function removeEach(
  context: Pick<Context, 'out'>,
  names: readonly string[],
  remove: (name: string) => Promise<unknown>,
): Promise<Exit> {
  const { out } = context;
  const removed: string[] = [];
  const exit = await eachOf(
    context,
    names,
    (name) => name,
    async (name) => {
      await remove(name);
      removed.push(name);
      out.print(`Removed ${sanitiseLine(name)}.`);
    },
  );
  if (out.json) out.data({ removed });
  return exit;
}
