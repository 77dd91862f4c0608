import type { Context } from '../context/context.ts';
import { createContext } from '../context/create-context.ts';
import { createOutput } from '../context/output.ts';
import type { Sink } from '../context/sink.ts';
import type { Environment } from '../directories.ts';
import { CliError, type Exit, exits, OutputClosed } from '../exit.ts';
import { createPrompter } from '../keys/prompt.ts';
import { parseSwitch } from '../text/values.ts';
import type { GlobalOptions, Surroundings } from './surroundings.ts';

/**
 * Runs one command and reports its error.
 * @returns the exit code
 */
export async function runVerb(
  surroundings: Surroundings,
  { json: jsonFlag, verbose: verboseFlag, quiet: quietFlag, color, ...options }: GlobalOptions,
  verb: (context: Context) => Promise<number | undefined>,
): Promise<number> {
  // Omits `stdin`, which is opened on demand.
  const { env: variables, stdout, stderr, prompt, now, sleep, terminal, onInterrupt, onEnd } = surroundings;
  let [json, verbose, quiet, noColor] = [jsonFlag === true, verboseFlag === true, quietFlag === true, color === false];
  try {
    json ||= parseSwitch('MUSTER_JSON', variables.MUSTER_JSON);
    verbose ||= parseSwitch('MUSTER_VERBOSE', variables.MUSTER_VERBOSE);
    quiet ||= parseSwitch('MUSTER_QUIET', variables.MUSTER_QUIET);
    noColor ||= parseSwitch('MUSTER_NO_COLOR', variables.MUSTER_NO_COLOR);
  } catch (error) {
    return await printError(error, { stderr, json, verbose, env: variables });
  }
  const env = noColor ? { ...variables, NO_COLOR: '1' } : variables;
  const out = createOutput({ stdout, stderr, env, json, verbose, quiet, now });
  const context = createContext({
    env,
    out,
    options,
    now,
    sleep,
    terminal,
    onInterrupt,
    prompt:
      prompt ??
      createPrompter(
        () => surroundings.stdin,
        stderr,
        (giveBack) => {
          const goOn = out.pauseDrawing();
          const release = onEnd(giveBack);
          return () => {
            release();
            goOn();
          };
        },
      ),
    stdin: async ({ unseen = false } = {}) => {
      const { stdin } = surroundings;
      if (unseen && stdin.isTTY === true)
        throw new CliError(
          exits.failed,
          'cannot_ask_unseen',
          'cannot read a secret without echo: standard error is not a terminal',
          'Do not redirect standard error, or pipe the value in.',
        );
      const pieces: Buffer[] = [];
      for await (const piece of stdin) pieces.push(Buffer.from(piece as Uint8Array));
      return Buffer.concat(pieces).toString('utf8');
    },
  });
  try {
    return (await verb(context)) ?? exits.done;
  } catch (error) {
    if (error instanceof OutputClosed) return exits.done;
    return await printError(error, { stderr, json, verbose, env });
  } finally {
    context.close();
  }
}

/**
 * Prints an error on stderr, as text or JSON.
 * @returns its exit code
 */
export async function printError(
  error: unknown,
  { stderr, json, verbose, env }: { stderr: Sink; json: boolean; verbose: boolean; env: Environment },
): Promise<Exit> {
  const [{ explain, explanationData, renderExplanation }, { toJson }, { colorsFor, columnsOf, hasColor }] =
    await Promise.all([import('../transport/explain.ts'), import('../text/sanitize.ts'), import('../text/style.ts')]);
  const explanation = explain(error);
  const color = colorsFor(hasColor(stderr.isTTY === true, env));
  stderr.write(
    `${json ? toJson(explanationData(explanation), 'line') : renderExplanation(explanation, color, verbose, columnsOf(stderr, env))}\n`,
  );
  return explanation.exit;
}
