import type { Fault } from '@muster/protocol';

/** What scripts can tell apart. */
export const exits = {
  done: 0,
  failed: 1,
  usage: 2,
  pending: 3,
  signIn: 4,
  unreachable: 5,
  partly: 6,
} as const;
export type Exit = (typeof exits)[keyof typeof exits];

/** What each means, as the documentation has it. */
export const exitMeanings: Readonly<Record<keyof typeof exits, string>> = {
  done: 'done',
  failed: 'failed: the orchestrator refused, a resource failed, a module has faults, or you said no',
  usage: 'usage: what was typed cannot be meant so; nothing was sent',
  pending:
    '`plan --exit-code`: an apply would change something; `drift --exit-code`: a machine has drifted; `modules diff --exit-code`: they differ',
  signIn: 'sign-in: no usable key, or it is not an operator’s',
  unreachable:
    'unreachable: no orchestrator answers, its certificate is not trusted, it is stopping, or the agent is not connected',
  partly: 'partly failed: of several things named, some were done',
};

/** Something that stops a verb, in words for the person who typed it. */
export class CliError extends Error {
  readonly exit: Exit;
  /** Stable, snake_case: what `--json` and `--verbose` show. */
  readonly code: string;
  /** What to do about it; null when the message says it all. */
  readonly remedy: string | null;
  readonly faults: readonly Fault[];

  /**
   * @param message one line: what happened
   * @param remedy  one line: what to do
   */
  constructor(
    exit: Exit,
    code: string,
    message: string,
    remedy: string | null = null,
    options: { faults?: readonly Fault[]; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'CliError';
    this.exit = exit;
    this.code = code;
    this.remedy = remedy;
    this.faults = options.faults ?? [];
  }
}

/** Whoever read what is printed went away, as `head` does: an end without a word. */
export class ReaderGone extends Error {}

/** What was typed cannot be meant so. */
export const usageError = (message: string, remedy: string | null = null): CliError =>
  new CliError(exits.usage, 'usage', message, remedy);
