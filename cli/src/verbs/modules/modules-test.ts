import { readdir, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import type { Fault } from '@muster/protocol';
import { type Mismatch, readModuleTests, runModuleTest, type TestOutcome } from '@muster/protocol/module-trial';
import type { Command } from 'commander';
import { createTwoFilesPatch } from 'diff';
import type { Context } from '../../context/context.ts';
import type { Act } from '../../context/verb.ts';
import { CliError, type Exit, exits, usageError } from '../../exit.ts';
import { codeFrame } from '../../text/code-frame.ts';
import { faultLine } from '../../text/fault-text.ts';
import { sanitise, sanitiseLine } from '../../text/sanitize.ts';
import { type Colors, colorsFor, counted } from '../../text/style.ts';
import { type JunitSuite, junitXml } from './junit.ts';
import { filesOf } from './modules-check.ts';
import { readSource } from './modules-source.ts';
import { fromFiles, readModules, withRequiredModules } from './trial-modules.ts';
import { faulty, moduleOf, type TriedModule } from './trial-sources.ts';

/** Registers `muster modules test`. */
export function registerTests(command: Command, act: Act): void {
  command
    .command('test')
    .description('Run the tests of modules; needs no orchestrator')
    .argument('<files...>', 'Test files, or directories with tests directories that contain them')
    .option('--junit <file>', 'Write the results as JUnit XML too')
    .addHelpText(
      'after',
      '\nA test has an agent, parameters, and expected resources. It tests the modules that it lists under modules; otherwise\nthe module.yml above its tests directory, or the module there with the name of the test file. Required modules are\nfound in the given directories.\n\nExamples:\n  $ muster modules test nginx/\n  $ muster modules test modules/ --junit results.xml',
    )
    .action(act(test));
}

async function directoriesOf(words: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const word of words) if ((await stat(word).catch(() => null))?.isDirectory() === true) found.push(word);
  return found;
}

/** Returns the test files that the arguments specify. */
async function testFiles(words: readonly string[]): Promise<string[]> {
  const files: string[] = [];
  for (const word of words) {
    if ((await stat(word).catch(() => null))?.isDirectory() !== true) {
      files.push(word);
      continue;
    }
    const entries = await readdir(word, { recursive: true, withFileTypes: true });
    const found = entries
      .filter((entry) => entry.isFile() && /\.ya?ml$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((path) => basename(dirname(path)) === 'tests' && !/(^|\/)(node_modules|\.[^./][^/]*)\//.test(path))
      .toSorted();
    if (found.length === 0)
      throw usageError(
        `${word} contains no tests`,
        'Write tests into a directory named tests, such as tests/debian.yml.',
      );
    files.push(...found);
  }
  return [...new Set(files)];
}

/** Returns the module files that a test file covers. */
async function moduleFiles(file: string, listed: readonly string[] | null): Promise<string[]> {
  const folder = dirname(file);
  if (listed !== null) return listed.map((module) => join(folder, module));
  const above = join(folder, '..');
  const candidates = ['module.yml', 'module.yaml', basename(file)].map((name) => join(above, name));
  for (const candidate of candidates)
    if ((await stat(candidate).catch(() => null))?.isFile() === true) return [candidate];
  throw new CliError(
    exits.failed,
    'file_unreadable',
    `${file} lists no modules, and there is neither ${candidates[0]} nor ${candidates[2]}`,
    'Name the file of the module, relative to the test file: modules: [../nginx.yml]',
  );
}

interface CaseResult extends TestOutcome {
  readonly name: string;
  readonly line: number;
  readonly seconds: number;
}

interface FileResult {
  readonly file: string;
  readonly content: string;
  readonly modules: readonly TriedModule[];
  readonly cases: readonly CaseResult[];
}

const hasPassed = ({ mismatches, faults }: TestOutcome): boolean => mismatches.length === 0 && faults.length === 0;

type Find = ReturnType<typeof fromFiles>;

/** Reports whether a file is a module, which has keys at its top level that a test file never has. */
const isModule = (content: string): boolean => /^(supports|resources|templates)\s*:/m.test(content);

function moduleGiven(file: string): CliError {
  const tests = join(dirname(file), 'tests');
  return usageError(
    `${file} is a module, not a test file`,
    `Specify its tests, such as ${join(tests, basename(file))}, or the directory ${dirname(file)}.`,
  );
}

async function runFile(context: Context, name: string, find: Find): Promise<FileResult> {
  const { file, bytes } = await readSource(context, name);
  const content = new TextDecoder().decode(bytes);
  const read = readModuleTests(bytes);
  if (!read.ok) {
    if (isModule(content)) throw moduleGiven(file);
    throw faulty(context, file, content, read.faults);
  }
  const named = await readModules(context, await moduleFiles(file, read.file.modules));
  const modules = await withRequiredModules(named, find);
  const documents = modules.map(({ module }) => module);
  const cases = read.file.tests.map((one, index): CaseResult => {
    const start = performance.now();
    const outcome = runModuleTest(one, documents);
    const label = one.name ?? (read.file.tests.length === 1 ? basename(file) : `test ${index + 1}`);
    return { name: label, line: one.line, seconds: (performance.now() - start) / 1000, ...outcome };
  });
  return { file, content, modules, cases };
}

async function test(context: Context, words: string[], options: { junit?: string }): Promise<Exit> {
  const { out } = context;
  if (words.includes('-'))
    throw usageError('tests cannot be read from standard input', 'Specify a file or a directory.');
  const results: FileResult[] = [];
  const find = fromFiles(context, () => directoriesOf(words).then(filesOf));
  for (const file of await testFiles(words)) results.push(await runFile(context, file, find));
  if (options.junit !== undefined) await writeJunit(options.junit, results);
  const cases = results.flatMap(({ cases }) => cases);
  const failed = cases.filter((one) => !hasPassed(one)).length;
  if (out.json)
    out.data({
      passed: cases.length - failed,
      failed,
      files: results.map(({ file, cases }) => ({
        file,
        tests: cases.map((one) => ({
          name: one.name,
          passed: hasPassed(one),
          mismatches: one.mismatches,
          faults: one.faults,
        })),
      })),
    });
  else {
    for (const result of results)
      for (const one of result.cases) out.print(caseText(result, one, out.style.color, out.style.width));
    out.note(`${counted(cases.length - failed, 'test')} passed, ${failed} failed`);
  }
  return failed > 0 ? exits.failed : exits.done;
}

function caseText(result: FileResult, one: CaseResult, color: Colors, width: number | null): string {
  const name = `${sanitiseLine(result.file)}: ${sanitiseLine(one.name)}`;
  if (hasPassed(one)) return `${color.green('ok')} ${name}`;
  const style = { color, width };
  const lines = [`${color.red('failed')} ${name}`];
  for (const mismatch of one.mismatches)
    lines.push(...block(result.file, result.content, mismatch, style), ...differenceLines(mismatch, color));
  for (const fault of one.faults) {
    const found = result.modules.find(({ module }) => module.name === moduleOf(fault));
    lines.push(...block(found?.source ?? result.file, found?.content ?? '', fault, style));
  }
  return lines.join('\n');
}

const block = (
  file: string,
  content: string,
  fault: Pick<Fault, 'line' | 'column' | 'message'>,
  style: { color: Colors; width: number | null },
): string[] => {
  const frame = codeFrame(content, fault, style);
  return [faultLine(file, { path: '', ...fault }, style.color), ...(frame === '' ? [] : [frame])];
};

/** Shows the expected and actual values, as a diff if they have several lines. */
function differenceLines({ difference }: Mismatch, color: Colors): string[] {
  if (difference === null) return [];
  const { expected, actual } = difference;
  if (!expected.includes('\n') && !actual.includes('\n'))
    return [color.green(`  expected: ${sanitiseLine(expected)}`), color.red(`  actual:   ${sanitiseLine(actual)}`)];
  const patch = createTwoFilesPatch('expected', 'actual', ended(expected), ended(actual), '', '', { context: 3 });
  return patch
    .split('\n')
    .slice(1, -1)
    .map((line) => {
      const paint = line.startsWith('-') ? color.green : line.startsWith('+') ? color.red : color.dim;
      return `  ${paint(sanitise(line))}`;
    });
}

const ended = (text: string): string => (text.endsWith('\n') ? text : `${text}\n`);

async function writeJunit(path: string, results: readonly FileResult[]): Promise<void> {
  const suites = results.map(
    (result): JunitSuite => ({
      name: relative('.', result.file),
      cases: result.cases.map((one) => {
        const [first] = [...one.mismatches, ...one.faults];
        if (first === undefined) return { name: one.name, seconds: one.seconds };
        const details = caseText(result, one, colorsFor(false), null);
        return { name: one.name, seconds: one.seconds, failure: { message: first.message, details } };
      }),
    }),
  );
  try {
    await writeFile(path, junitXml(suites));
  } catch (error) {
    const { message } = error as Error;
    throw new CliError(exits.failed, 'file_unwritable', `cannot write ${path}: ${message}`, null, { cause: error });
  }
}
