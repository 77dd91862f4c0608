import type { Fault } from '@muster/protocol';

/** The exit codes of the program. */
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

/** The meaning of each exit code, as in docs/cli.md. */
export const exitMeanings: Readonly<Record<keyof typeof exits, string>> = {
  done: 'success',
  failed: 'failure: the orchestrator refused, a resource failed, a module has errors, or you answered no',
  usage: 'usage error: the command line is invalid, and nothing was sent',
  pending:
    '`plan --exit-code`: an apply would change something; `drift --exit-code`: a machine has drifted; `modules diff --exit-code`: the revisions differ',
  signIn: 'sign-in failed: no usable key, or the key does not belong to an operator',
  unreachable:
    'unreachable: the orchestrator does not answer, its certificate is not trusted, it is stopping, or the agent is offline',
  partly: 'partial failure: some agents or items succeeded, others failed',
};

/** Makes a command exit with a message for the operator. */
export class CliError extends Error {
  readonly exit: Exit;
  /** Stable code in snake_case. Shown with `--json` and `--verbose`. */
  readonly code: string;
  /** What to do; null if the message is sufficient. */
  readonly remedy: string | null;
  readonly faults: readonly Fault[];
  /** When the stale plan was requested, in Unix seconds; null for other errors, or if unknown. */
  readonly planned_at: number | null;

  /**
   * @param message what happened, in one line
   * @param remedy what to do, in one line
   */
  constructor(
    exit: Exit,
    code: string,
    message: string,
    remedy: string | null = null,
    options: { faults?: readonly Fault[]; planned_at?: number | null; cause?: unknown } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'CliError';
    this.exit = exit;
    this.code = code;
    this.remedy = remedy;
    this.faults = options.faults ?? [];
    this.planned_at = options.planned_at ?? null;
  }
}

/** The reader has closed standard output, as `head` does. The program exits without a message. */
export class OutputClosed extends Error {}

/** Creates the error that reports an invalid command line. */
export const usageError = (message: string, remedy: string | null = null): CliError =>
  new CliError(exits.usage, 'usage', message, remedy);
