import { failureText } from '../processes/failure-text.ts';
import { type CommandResult, type Runner, runInEnglish } from '../processes/run-command.ts';

/** Runs the programs that change firewall rules. */

/** Directory for the rule files that nft loads. Only root can change it, and it is empty after a boot. */
export const workDirectory = '/run/muster-firewall';

const timeLimit = 60_000;
const outputCap = 4 * 1024 * 1024;

export const run = (program: string, args: readonly string[], runner: Runner): Promise<CommandResult> =>
  runInEnglish(program, args, { timeLimit, outputCap }, runner);

/** Returns the reason why a program failed. */
export const reasonOf = (result: CommandResult): string =>
  failureText(result, 'it', timeLimit, (stderr) => stderr.trim().slice(0, 500));
