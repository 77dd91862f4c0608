import { CliError, exits, usageError } from '../exit.ts';
import { sanitiseLine } from '../text/sanitize.ts';
import type { Context } from './context.ts';

/**
 * Asks for confirmation before a destructive change. Requires `--yes` if there is no terminal.
 * @param what the effect of the change, for the error if there is no terminal
 * @throws CliError if there is no terminal, or if the answer is no
 */
export async function confirmed(
  { out, prompt }: Pick<Context, 'out' | 'prompt'>,
  yes: boolean | undefined,
  { question, what }: { question: string; what: string },
): Promise<void> {
  if (yes) return;
  if (!prompt.interactive || out.json) throw usageError(what, 'Confirm with --yes.');
  if (!(await prompt.confirm(question))) throw new CliError(exits.failed, 'cancelled', 'canceled; nothing was changed');
}

/**
 * Asks for confirmation before items are removed.
 * @param noun what the items are, such as `agent`
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
