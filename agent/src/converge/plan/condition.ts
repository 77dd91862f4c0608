import type { OnlyIf } from '@muster/protocol/module';
import { HostFailure } from '../../host/failure.ts';
import { pathExists } from '../../host/files/path-exists.ts';
import type { Machine } from '../../resources/provider/provider.ts';
import { runShell } from '../../resources/script/script.ts';
import type { Condition } from './decision.ts';
import type { Step } from './steps.ts';
import type { StepsState } from './steps-state.ts';

/** Evaluates `only_if` on the machine. */

export const satisfied: Condition = { note: null };

/** Access to the machine while a condition is evaluated. */
interface Evaluator {
  readonly view: { machine(): Machine };
  /** Reports whether the operation was canceled. */
  interrupted(): boolean;
}

/**
 * Result of a condition. In a plan, the result may be uncertain, because an earlier step may change it or because a
 * step that would have changed it failed.
 */
interface Answer {
  holds: boolean;
  mayHold: boolean;
  mayNotHold: boolean;
  /** State of the machine, for messages. */
  finding: string;
  /** Labels of the earlier steps that may change the result or that failed. */
  steps: readonly string[];
}

/** Maximum number of bytes of a command's output to keep. The output is not reported. */
const outputBytes = 4096;
/** Maximum length of a command in a message, in characters. */
const shownCharacters = 80;

/**
 * Checks whether the condition of a step is true on the machine or, in a plan, after the earlier steps. Changes nothing
 * if the commands in the condition only read.
 * @throws Stopped if the agent must stop
 */
export function conditionOf(step: Step, stepsState: StepsState, evaluator: Evaluator): Condition | Promise<Condition> {
  const condition = step.kind === 'apply' ? step.resource.only_if : undefined;
  return condition === undefined ? satisfied : evaluate(condition, step, stepsState, evaluator);
}

async function evaluate(
  condition: OnlyIf,
  step: Step,
  stepsState: StepsState,
  evaluator: Evaluator,
): Promise<Condition> {
  try {
    const { holds, mayHold, mayNotHold, finding, steps } = await answerOf(condition, step, stepsState, evaluator);
    if (stepsState.purpose !== 'plan') {
      if (!mayNotHold) return satisfied;
      const reason = holds ? `its condition depends on ${listed(steps)}, which did not succeed: ${finding}` : finding;
      return { verdict: 'skip', message: `skipped, because ${reason} (\`only_if\`)` };
    }
    if (holds) return satisfied;
    if (!mayHold) return { verdict: 'skip', message: `skipped, because ${finding} (\`only_if\`)` };
    return { note: `${finding} now: skipped unless changed by ${listed(steps)} (\`only_if\`)` };
  } catch (error) {
    if (!(error instanceof HostFailure)) throw error;
    return { verdict: 'fail', message: `\`only_if\`: ${error.message}` };
  }
}

async function answerOf(condition: OnlyIf, step: Step, stepsState: StepsState, evaluator: Evaluator): Promise<Answer> {
  if ('not' in condition) {
    const answer = await answerOf(condition.not, step, stepsState, evaluator);
    return { ...answer, holds: !answer.holds, mayHold: answer.mayNotHold, mayNotHold: answer.mayHold };
  }
  if ('exists' in condition) return existence(condition.exists, step, stepsState);
  if ('command' in condition) return success(condition.command, stepsState, evaluator);
  const answers: Answer[] = [];
  for (const part of condition) {
    const answer = await answerOf(part, step, stepsState, evaluator);
    // The remaining parts cannot change the result.
    if (!answer.mayHold) return answer;
    answers.push(answer);
  }
  const decisive = answers.find(({ holds }) => !holds) ?? answers.find(({ mayNotHold }) => mayNotHold);
  return {
    holds: answers.every(({ holds }) => holds),
    mayHold: true,
    mayNotHold: answers.some(({ mayNotHold }) => mayNotHold),
    finding: decisive?.finding ?? answers.map(({ finding }) => finding).join(', and '),
    steps: [...new Set((decisive === undefined ? answers : [decisive]).flatMap(({ steps }) => steps))],
  };
}

function existence(path: string, step: Step, stepsState: StepsState): Answer {
  const exists = pathExists(path);
  if (stepsState.purpose === 'plan') {
    const expected = stepsState.willExist(path, exists);
    return answer(expected, `${path} ${expected ? 'exists' : 'does not exist'}`, stepsState.mayMakePaths(step));
  }
  // An apply must not do more than its plan, which assumed that the step would succeed.
  const planned = stepsState.failedPath(path);
  const steps = planned === null || planned.exists === exists ? [] : [planned.label];
  return answer(exists, `${path} ${exists ? 'exists' : 'does not exist'}`, steps);
}

async function success(command: string, stepsState: StepsState, evaluator: Evaluator): Promise<Answer> {
  const machine = evaluator.view.machine();
  const { checkMs } = machine.limits;
  const { exitCode, signal, timedOut } = await runShell(command, checkMs, outputBytes, machine);
  // The command may have been killed by the cancellation.
  if (evaluator.interrupted()) throw new HostFailure('the operation was canceled while the condition was evaluated');
  const name = shown(command);
  if (timedOut) throw new HostFailure(`${name} was stopped because it took longer than ${checkMs / 1000} s`);
  if (exitCode === null) throw new HostFailure(`${name} was ended by ${signal}`);
  // A command can read anything that an earlier step changes.
  const steps = stepsState.purpose === 'plan' ? stepsState.changedLabels() : [];
  return answer(exitCode === 0, `${name} ${exitCode === 0 ? 'succeeds' : `fails with exit code ${exitCode}`}`, steps);
}

const answer = (holds: boolean, finding: string, steps: readonly string[]): Answer => ({
  holds,
  mayHold: holds || steps.length > 0,
  mayNotHold: !holds || steps.length > 0,
  finding,
  steps,
});

function shown(command: string): string {
  const [line = ''] = command.trim().split('\n', 1);
  return `\`${line.length > shownCharacters ? `${line.slice(0, shownCharacters)}…` : line}\``;
}

function listed(labels: readonly string[]): string {
  const named = labels.slice(0, 3).map((label) => `\`${label}\``);
  return labels.length > 3 ? `${named.join(', ')} or ${labels.length - 3} more` : named.join(', ');
}
