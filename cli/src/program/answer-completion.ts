import type { Command } from 'commander';
import { type Candidate, completionOf } from '../completion/completion.ts';
import type { Context } from '../context/context.ts';
import type { Surroundings } from './surroundings.ts';

/** Time limit for the orchestrator, in milliseconds. */
const limitMs = 1200;

/** Takes the place of the prompt, because a completion must not ask questions. */
const refusePrompt = async (): Promise<never> => {
  throw new Error('completion does not prompt');
};

/** Reports whether a shell interprets no character of the word and a terminal shows it unchanged. */
const isSafe = ({ value }: Candidate): boolean => /^[\p{L}\p{N}@%+=:,./_-]+$/u.test(value);

/** Parses the options that choose the orchestrator from the typed words. */
function targetIn(typed: readonly string[]): {
  url?: string;
  profile?: string;
  keyFile?: string;
  fingerprint?: string;
} {
  const value = (flag: string): string | undefined => {
    const at = typed.indexOf(flag);
    return at === -1 || at > typed.length - 3
      ? typed.find((word) => word.startsWith(`${flag}=`))?.slice(flag.length + 1)
      : typed[at + 1];
  };
  const found = {
    url: value('--url'),
    profile: value('--profile'),
    keyFile: value('--key-file'),
    fingerprint: value('--fingerprint'),
  };
  return Object.fromEntries(Object.entries(found).filter(([, text]) => text !== undefined));
}

/**
 * Prints the completions of a command line. Each line consists of the word, a tab, and a description; `:files` alone
 * makes the shell complete file names. After an error, prints nothing.
 * @param typed the words after `muster`; the last one is completed
 */
export async function answer(program: Command, typed: readonly string[], surroundings: Surroundings): Promise<void> {
  const { stdout, env } = surroundings;
  const completion = completionOf(program, typed);
  if (completion.files) {
    stdout.write(':files\n');
    return;
  }
  let candidates = completion.fixed;
  if (completion.source !== null) {
    const { source } = completion;
    const silent = { write: () => true };
    const { runVerb } = await import('./run.ts');
    const { live } = await import('../completion/live.ts');
    await runVerb(
      {
        ...surroundings,
        // Omits ssh-agent, because its key may require a touch.
        env: {
          ...env,
          SSH_AUTH_SOCK: undefined,
          MUSTER_JSON: '',
          MUSTER_QUIET: '',
          MUSTER_VERBOSE: '',
          MUSTER_NO_COLOR: '',
        },
        stderr: silent as unknown as Surroundings['stderr'],
        prompt: {
          interactive: false,
          confirm: refusePrompt,
          ask: refusePrompt,
          secret: refusePrompt,
          choose: refusePrompt,
        },
      },
      targetIn(typed),
      async (context: Context) => {
        candidates = await live(context, source, limitMs);
        return undefined;
      },
    );
  }
  const { before, begins, named } = completion;
  const fitting = candidates.filter(
    (each) => each.value.startsWith(begins) && !named.includes(each.value) && isSafe(each),
  );
  const { sanitiseLine } = await import('../text/sanitize.ts');
  for (const { value, about } of fitting)
    stdout.write(`${before}${value}${about === '' ? '' : `\t${sanitiseLine(about).slice(0, 80)}`}\n`);
}
