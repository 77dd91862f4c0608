import { visible, visibleJson, visibleLine } from '@muster/protocol';
import { ConfigError } from '../config/faults.ts';
import { optionsOf, wordsOf } from '../config/flags.ts';
import { type Invocation, readInvocation } from '../config/read.ts';
import { offlineCommands } from './commands.ts';

/**
 * Runs `muster migrate`, `export`, `import`, `backup`, `restore`, `orchestrator share`, or `orchestrator join`.
 * @param args arguments after the command
 * @returns the exit code
 */
export async function runOffline(command: string, args: readonly string[], defaultDataDir: string): Promise<number> {
  const { stdout, stderr } = process;
  const json = args.includes('--json');
  // Names in backups, configurations, and databases are untrusted and may contain control characters.
  const say = (text: string) => void stderr.write(`${visible(text)}\n`);
  const fail = (error: Error, more: string | null = null): number => {
    const exit = error instanceof ConfigError ? 2 : 1;
    // The error format of all Muster commands.
    const body = {
      code: exit === 2 ? 'usage' : 'failed',
      status: null,
      message: error.message,
      remedy: more,
      errors: [],
    };
    say(
      json
        ? visibleJson(JSON.stringify({ error: body, exit }))
        : // Indents lines, so that a newline in a name cannot imitate a message from this program.
          `muster ${command}: ${error.message.replaceAll('\n', '\n  ')}${more ? `\n${more}` : ''}`,
    );
    return exit;
  };
  const rest = args.filter((arg) => arg !== '--json');
  const [verb = ''] = wordsOf(rest).words;
  const longer = `${command} ${verb}`;
  const found = offlineCommands[longer] ?? offlineCommands[command];
  if (!found) throw new Error(`there is no command ${command}`);
  const own = optionsOf(rest, found.options ?? {});
  const { words, rest: common } = wordsOf(own.rest);
  if (longer in offlineCommands) words.shift();
  let given: Invocation;
  try {
    if (own.fault !== null) throw new ConfigError(own.fault);
    given = readInvocation(common, process.env, defaultDataDir);
    if (!given.help && words.length !== found.words.length)
      throw new ConfigError(
        found.words.length === 0
          ? `unexpected argument ${words[0]}`
          : `expected ${found.words.join(' ')}, or - for a pipe`,
      );
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return fail(error, `See: muster ${command} --help`);
  }
  if (given.help) {
    stdout.write(found.usage);
    return 0;
  }
  // The callback of the failed write already reports that the reader of the output has exited.
  stdout.on('error', () => {});
  try {
    const outcome = await found.run(given.config, given.dataDir, words, {
      tell: (line) => {
        if (!json) say(visibleLine(line));
      },
      stdin: process.stdin,
      stdout,
      now: Date.now,
      env: process.env,
      given: own.values,
      configFile: given.file,
    });
    // Prints the JSON to standard error if the export or backup is on standard output.
    if (json)
      (words.includes('-') && ['export', 'backup', 'orchestrator share'].includes(command) ? stderr : stdout).write(
        `${visibleJson(JSON.stringify(outcome))}\n`,
      );
    return 0;
  } catch (error) {
    const { code, path } = error as NodeJS.ErrnoException;
    if (code === 'EACCES' || code === 'EPERM')
      return fail(error as Error, `Run it as root or as the orchestrator's user: sudo muster ${command} …`);
    return fail(code === 'ENOENT' && path ? new Error(`${path} does not exist`) : (error as Error));
  }
}
