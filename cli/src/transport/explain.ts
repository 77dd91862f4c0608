import { errorKinds } from '@muster/protocol';
import { ApiError } from '@muster/protocol/client';
import { CliError, type Exit, exits } from '../exit.ts';
import { sanitise, sanitiseLine, sanitiseParagraph } from '../text/sanitize.ts';
import { type Colors, timestamp } from '../text/style.ts';
import { wrapMessage } from '../text/width.ts';

/** An error for operators and scripts, with its cause and remedy. */
export interface Explanation {
  exit: Exit;
  code: string;
  /** HTTP status; null for an error in this program. */
  status: number | null;
  message: string;
  remedy: string | null;
  errors: readonly { path: string; message: string; line?: number; column?: number }[];
  /** When the stale plan was requested, in Unix seconds; null for other errors, or if unknown. */
  planned_at: number | null;
  /** Identifies the request in the orchestrator's log. */
  instance: string | null;
  /** Set only for unexpected errors. */
  stack: string | null;
}

export const stalePlanRemedy =
  'The machine, its desired state, or a secret has changed since the plan. Run the same command again without --plan or --plan-run, or make a new plan first: muster plan';

// Remedies for operators who use this program. The error table contains remedies for users of the API.
const remedies: Readonly<Record<string, string>> = {
  unauthenticated: 'Sign in again: muster login',
  agent_not_found: 'List the agents: muster agents list',
  agent_not_connected: 'To see when it was last seen: muster agents list',
  agent_not_rejected: 'Reject it first: muster agents reject',
  agent_not_approved: 'Approve it first: muster agents approve',
  tag_not_found: 'To see its tags: muster agents show AGENT',
  plan_stale: stalePlanRemedy,
  name_required: 'To give it a name: muster agents approve … --name NAME',
  // The remedy in the table refers to `errors`, which are printed above.
  module_unresolved: 'Compare with the attributes of the agent: muster agents show AGENT',
  module_conflict: 'Keep the resource in one of the two modules, or make both equal.',
  selector_invalid: 'Terms look like key=value, key!=value, key in (a,b), key, !key.',
  operator_not_found: 'To see who you are: muster operator whoami',
  assignment_not_found: 'List the assignments: muster assignments list',
  run_not_found: 'List the runs: muster runs list',
  terminal_not_found: 'List the terminal sessions: muster terminal list',
  terminal_ended: 'To see the terminal session: muster terminal replay SESSION',
  enrolment_token_not_found: 'List the tokens: muster enrollment-tokens list',
  unexpected_answer: 'Check the address: --url, MUSTER_URL, or muster profile list.',
};

function remedyFor(code: string, detail: string): string | undefined {
  if (code === 'module_unresolved' && detail.startsWith('the secret '))
    return 'List the secrets and the agents that may use them: muster secrets list';
  if (code === 'module_unresolved' && detail.includes(' has neither value nor default: '))
    return 'Assignments give parameters their values: muster assignments create --help';
  return Object.hasOwn(remedies, code) ? remedies[code] : undefined;
}

const unreachable = new Set(['draining', 'agent_not_connected', 'agent_offline', 'unexpected_answer']);

const exitOf = (status: number, code: string): Exit => {
  if (code === 'unauthenticated' || code === 'signature_invalid' || code === 'operator_unknown') return exits.signIn;
  if (unreachable.has(code)) return exits.unreachable;
  return status === 502 || status === 504 ? exits.unreachable : exits.failed;
};

/**
 * Explains an error.
 * @param error any thrown value
 */
export function explain(error: unknown): Explanation {
  if (error instanceof ApiError) {
    const { status, code, detail, instance, errors, planned_at } = error.problem;
    const known = Object.hasOwn(errorKinds, code) ? errorKinds[code as keyof typeof errorKinds] : null;
    // Avoids showing the same text as both message and remedy.
    const message = known !== null && detail === known.remedy ? known.title : detail;
    const faults = Array.isArray(errors) ? errors : [];
    const remedy = remedyFor(code, detail) ?? known?.remedy;
    const wait = error.retryAfter === null ? null : `Try again in ${error.retryAfter} s.`;
    return {
      exit: exitOf(status, code),
      code,
      status,
      message,
      // Omits a remedy that refers to the field `errors`, because the errors are printed.
      remedy: wait ?? (faults.length > 0 && remedy?.includes('`errors`') ? null : remedy) ?? null,
      errors: faults,
      planned_at: planned_at ?? null,
      instance: typeof instance === 'string' ? instance : null,
      stack: null,
    };
  }
  const noAnswer = { status: null, planned_at: null, instance: null };
  if (error instanceof CliError) {
    const { exit, code, message, remedy, faults, planned_at } = error;
    return { ...noAnswer, exit, code, message, remedy, errors: faults, planned_at, stack: null };
  }
  const { message, stack } = error instanceof Error ? error : { message: String(error), stack: undefined };
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code === 'string' && /^E[A-Z]+$/.test(code))
    return {
      ...noAnswer,
      exit: exits.failed,
      code: code.toLowerCase(),
      message,
      remedy: null,
      errors: [],
      stack: stack ?? null,
    };
  return {
    ...noAnswer,
    exit: exits.failed,
    code: 'internal',
    message: `unexpected error (a bug): ${message}`,
    remedy: 'Please report it with the output of --verbose.',
    errors: [],
    stack: stack ?? null,
  };
}

/** @param width columns of the terminal, for wrapping; null for no wrapping */
export function renderExplanation(
  explanation: Explanation,
  color: Colors,
  verbose: boolean,
  width: number | null = null,
): string {
  const lines = [`${color.red('error:')} ${sanitiseParagraph(explanation.message)}`];
  for (const { path, message, line, column } of explanation.errors) {
    // Some messages repeat the error.
    if (explanation.message.startsWith(message)) continue;
    const location = line === undefined ? sanitiseLine(path) : `${line}:${column ?? 1}`;
    lines.push(`  ${location === '' ? '' : `${color.bold(location)} `}${sanitiseLine(message)}`);
  }
  if (explanation.planned_at !== null) lines.push(`  the plan was requested at ${timestamp(explanation.planned_at)}`);
  if (explanation.remedy !== null) lines.push(`${color.cyan('hint:')} ${sanitiseParagraph(explanation.remedy)}`);
  if (verbose) {
    const status = explanation.status === null ? '' : `, HTTP ${explanation.status}`;
    const instance = explanation.instance ? `, ${sanitiseLine(explanation.instance)}` : '';
    lines.push(color.dim(`code: ${sanitiseLine(explanation.code)}${status}${instance}, exit ${explanation.exit}`));
    if (explanation.stack !== null) lines.push(color.dim(sanitise(explanation.stack)));
  }
  return wrapMessage(lines.join('\n'), width);
}

/** Returns the error as JSON, for the last line of standard error. */
export function explanationData({ exit, code, status, message, remedy, errors, planned_at }: Explanation): unknown {
  return { error: { code, status, message, remedy, errors, ...(planned_at === null ? {} : { planned_at }) }, exit };
}
