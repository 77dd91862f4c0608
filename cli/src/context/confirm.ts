import { CliError, exits, usageError } from '../exit.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import type { Context } from './context.ts';

/**
 * Asks before something is destroyed. Nobody there to ask: it has to be said on the command line.
 * @param what told in place of the question: what would happen
 * @throws CliError when nobody can be asked, and when the answer is no
 */
export async function confirmed(
  { out, prompt }: Pick<Context, 'out' | 'prompt'>,
  yes: boolean | undefined,
  { question, what }: { question: string; what: string },
): Promise<void> {
  if (yes) return;
  if (!prompt.interactive || out.json) throw usageError(what, 'Confirm with --yes.');
  if (!(await prompt.confirm(question)))
    throw new CliError(exits.failed, 'cancelled', 'cancelled; nothing was changed');
}

/**
 * Asks before things are removed.
 * @param noun what one of them is
 */
export async function confirmRemoval(
  context: Pick<Context, 'out' | 'prompt'>,
  names: readonly string[],
  { yes, noun }: { yes: boolean | undefined; noun: string },
): Promise<void> {
  const all = sanitiseLine(names.join(', '));
  const which = names.length === 1 ? `the ${noun} ${all}` : `${names.length} ${noun}s: ${all}`;
  await confirmed(context, yes, { question: `Remove ${which}?`, what: `this would remove ${which}` });
}
