import { ApiError } from '@muster/protocol/client';
import stringWidth from 'string-width';
import { CliError, exits } from '../exit.ts';
import { sanitiseLine } from '../text/sanitize.ts';

/** Maximum number of characters to show on each side of the error. */
const around = 30;

/**
 * Returns two lines: the selector, and a caret below its error. Shortens a long selector around the error.
 * @param column starts at 1, in UTF-16 code units
 */
function pointAt(selector: string, column: number): string {
  const at = Math.min(Math.max(0, column - 1), selector.length);
  const from = Math.max(0, at - around);
  const to = Math.min(selector.length, at + around);
  const before = `${from > 0 ? '…' : ''}${sanitiseLine(selector.slice(from, at))}`;
  const after = `${sanitiseLine(selector.slice(at, to))}${to < selector.length ? '…' : ''}`;
  return `${before}${after}\n${' '.repeat(stringWidth(before))}^`;
}

/**
 * Returns a handler for `catch` that adds the position of a selector error to the orchestrator's error.
 * @param selector as typed
 */
export const showingFault =
  (selector: string) =>
  (error: unknown): never => {
    if (!(error instanceof ApiError) || error.problem.code !== 'selector_invalid') throw error;
    const { errors = [], detail, code } = error.problem;
    const [fault] = errors;
    const column = fault?.column;
    if (fault === undefined || column === undefined) throw error;
    throw new CliError(
      exits.usage,
      code,
      `${detail}\n${pointAt(selector, column)}`,
      'Terms look like key=value, key!=value, key in (a,b), key, !key.',
      { faults: [fault], cause: error },
    );
  };
