import type { Clock } from '../../../lib/src/clock.ts';
import { errorMessage } from '../../../lib/src/error-message.ts';
import { runCommand } from '../host/processes/run-command.ts';
import { type FileStatus, fileStatus, namesIn, readText } from '../host/read-system.ts';

/** Reads attributes that the machine's owner adds, from YAML files and from programs that print YAML. */

const maxFile = 256 * 1024;
const maxFiles = 64;
const maxDepth = 8;
const timeLimitMs = 10_000;

type Warn = (file: string, problem: string) => void;

/**
 * Reads the attributes in a directory.
 * @returns attributes by name; nested names are joined by dots, so that `rack: {row: 4}` becomes `rack.row`
 */
export async function customFacts(directory: string, clock: Clock, warn: Warn): Promise<Record<string, string>> {
  const found: Record<string, string> = Object.create(null);
  const status = fileStatus(directory);
  if (status === null) return found;
  try {
    // Users who can write to the directory could create links, and so make root run programs or report private files.
    refuseOpenToOthers(status);
  } catch (error) {
    warn(directory, (error as Error).message);
    return found;
  }
  const names = namesIn(directory).filter((name) => !name.startsWith('.'));
  if (names.length > maxFiles)
    warn(directory, `it contains more than ${maxFiles} files; only the first ${maxFiles} are read`);
  for (const name of names.slice(0, maxFiles)) {
    const path = `${directory}/${name}`;
    try {
      const text = await textOf(path, clock);
      // U+FFFD replaces bytes that are not valid UTF-8.
      if (text?.includes('\ufffd') === true) throw new Error('it is not UTF-8; save it in that encoding');
      if (text === null) continue;
      // Imported on demand, because most agents never need the parser.
      const { parse } = await import('yaml');
      flatten(parse(text, { maxAliasCount: 20, schema: 'core' }), '', 0, found);
    } catch (error) {
      warn(path, errorMessage(error));
    }
  }
  return found;
}

/**
 * Returns the YAML text in a file or in a program's output; null if the file is neither, according to its name and
 * mode.
 */
async function textOf(path: string, clock: Clock): Promise<string | null> {
  const status = fileStatus(path);
  if (status === null || !status.isFile) return null;
  const program = (status.mode & 0o111) !== 0;
  if (!program && !/\.(ya?ml|json)$/.test(path)) return null;
  refuseOpenToOthers(status);
  if (!program) {
    if (status.size > maxFile) throw new Error(`it is larger than ${maxFile} bytes; split it`);
    return readText(path);
  }
  const result = await runCommand({ program: path, args: [], timeLimit: timeLimitMs, outputCap: maxFile }, clock);
  if (result.timedOut) throw new Error(`it took longer than ${timeLimitMs / 1000} s`);
  if (result.exitCode !== 0)
    throw new Error(`it exited with ${result.exitCode ?? result.signal}: ${result.stderr.slice(0, 200)}`);
  if (result.truncated) throw new Error(`it printed more than ${maxFile} bytes`);
  return result.stdout;
}

/** Refuses a file that other users could use to run code as the agent or to change which variants apply. */
function refuseOpenToOthers({ mode, uid }: FileStatus): void {
  if ((mode & 0o022) !== 0) throw new Error('other users can write to it; set its mode with: chmod go-w');
  if (uid !== 0 && uid !== process.geteuid?.())
    throw new Error("it belongs neither to root nor to the agent's user; change its owner with: chown root");
}

function flatten(value: unknown, name: string, depth: number, into: Record<string, string>): void {
  if (depth > maxDepth) throw new Error(`it is nested more than ${maxDepth} levels deep`);
  if (value === null || value === undefined) return;
  if (typeof value !== 'object') {
    if (name === '') throw new Error('it must contain a mapping of names to values');
    into[name] = String(value);
    return;
  }
  for (const [key, item] of Array.isArray(value) ? value.entries() : Object.entries(value))
    flatten(item, name === '' ? String(key) : `${name}.${key}`, depth + 1, into);
}
