import { readdir, stat } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { TextDecoder } from 'node:util';
import type { Fault } from '@muster/protocol';
import type { Client } from '@muster/protocol/client';
import { validateModule } from '@muster/protocol/http';
import {
  conflictsBetween,
  type ModuleDocument,
  moduleFileName,
  parseModule,
  pointer,
  positionIn,
  requirementFaults,
  requiresOf,
} from '@muster/protocol/module';
import type { Command } from 'commander';
import type { Context } from '../../context/context.ts';
import type { Act } from '../../context/verb.ts';
import { eachNamed } from '../../execution/each.ts';
import { type Exit, exits, usageError } from '../../exit.ts';
import { codeFrame } from '../../text/code-frame.ts';
import { faultLine } from '../../text/fault-text.ts';
import { counted } from '../../text/style.ts';
import { readFolder } from './module-folder.ts';
import { onlyOneStdin, readSource } from './modules-source.ts';

/** A module file with the results of its checks. */
export interface CheckedFile {
  readonly file: string;
  readonly content: string;
  /** Null if the module has errors. */
  readonly module: ModuleDocument | null;
  faults: Fault[];
  warnings: Fault[];
}

const filesHelp = 'YAML files, folders with module.yml, or directories with them; - is standard input';

/** Registers the `muster modules` commands that check module files. */
export function registerChecks(command: Command, act: Act): void {
  command
    .command('check')
    .description('Check modules and find conflicts; needs no orchestrator')
    .argument('<files...>', filesHelp)
    .option('--orchestrator', 'Check with the rules of the orchestrator')
    .addHelpText(
      'after',
      '\nShows the position of each error. Stores nothing. Modules conflict if they declare the same resource differently\nand one agent may have both modules.\n\nExamples:\n  $ muster modules check motd.yml\n  $ muster modules check modules/',
    )
    .action(act(check));
  command
    .command('validate')
    .description('Check each module separately, for editors; needs no orchestrator')
    .argument('<files...>', filesHelp)
    .addHelpText(
      'after',
      '\nPrints errors as file:line:column message on standard output.\n\nExample:\n  $ muster modules validate *.yml',
    )
    .action(act(validate));
}

/**
 * Returns the files that the arguments specify. For a directory, returns the YAML files below it, except module tests.
 */
export async function filesOf(words: readonly string[]): Promise<string[]> {
  onlyOneStdin(words);
  const files: string[] = [];
  for (const word of words) {
    const isDirectory = word !== '-' && (await stat(word).catch(() => null))?.isDirectory() === true;
    const found = isDirectory ? await yamlBelow(word) : [word];
    if (found.length === 0)
      throw usageError(`${word} contains no .yml or .yaml file`, 'Specify module files, or a directory with modules.');
    files.push(...found);
  }
  return [...new Set(files)];
}

async function yamlBelow(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const found = entries
    .filter((entry) => entry.isFile() && /\.ya?ml$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !/(^|\/)(node_modules|tests|\.[^./][^/]*)\//.test(path.slice(folder.length)))
    .toSorted();
  // Other YAML files in a module's folder belong to that module.
  const folders = found.filter((path) => basename(path) === moduleFileName).map((path) => `${dirname(path)}/`);
  return found.filter(
    (path) => basename(path) === moduleFileName || !folders.some((directory) => path.startsWith(directory)),
  );
}

/** Reads a module file. If it is the `module.yml` of a folder, also reads the files next to it. */
async function moduleAt(context: Context, name: string, isBelow: boolean) {
  const local = isBelow && basename(name) === moduleFileName ? await readFolder(dirname(name)) : null;
  return { ...(await readSource(context, name)), folder: local?.folder };
}

/** Reads and checks modules. Continues after a file that cannot be read, unless it is the only one. */
export async function checkedFiles(
  context: Context,
  words: readonly string[],
): Promise<{ files: CheckedFile[]; exit: Exit }> {
  const files: CheckedFile[] = [];
  const exit = await eachNamed(context, await filesOf(words), async (name) => {
    const { file, bytes, folder } = await moduleAt(context, name, !words.includes(name));
    const parsed = parseModule(bytes, folder);
    files.push({
      file,
      content: new TextDecoder().decode(bytes),
      module: parsed.ok ? parsed.module : null,
      faults: parsed.ok ? [] : parsed.faults,
      warnings: parsed.warnings,
    });
  });
  return { files, exit };
}

/**
 * Adds errors for `requires`, for conflicts between modules, and for names that two files use. Reports a conflict or
 * duplicate name in the later file.
 */
function addConflicts(files: readonly CheckedFile[]): void {
  const sound = files.flatMap((file) => (file.module === null ? [] : [{ ...file, module: file.module, of: file }]));
  const firsts = new Map<string, string>();
  const distinct = sound.filter(({ module: { name }, of }) => {
    const first = firsts.get(name);
    if (first === undefined) firsts.set(name, of.file);
    else
      of.faults.push(
        faultAt(of, ['name'], `${first} has the name ${JSON.stringify(name)} too, and only one can be stored`),
      );
    return first === undefined;
  });
  const modules = distinct.map((each) => each.module);
  const requires = requiresOf(modules);
  // A required module that is not among the files may be stored on the orchestrator.
  for (const { module, of } of distinct)
    for (const { path, message } of requirementFaults(module, requires, (name) =>
      modules.find((each) => each.name === name),
    ))
      of.faults.push(faultAt(of, path, message));
  for (const { module, path, message, uncertain } of conflictsBetween(modules)) {
    const of = distinct[module]?.of;
    if (of === undefined) continue;
    if (uncertain) of.warnings.push(faultAt(of, path, `${message}, or make sure that no agent gets both`));
    else of.faults.push(faultAt(of, path, message));
  }
}

const faultAt = ({ content }: CheckedFile, path: readonly (string | number)[], message: string): Fault => ({
  path: pointer(path),
  message,
  ...positionIn(content, path),
});

async function check(context: Context, words: string[], options: { orchestrator?: boolean }): Promise<Exit> {
  const { files, exit } = await checkedFiles(context, words);
  if (options.orchestrator) {
    const { call } = await context.connect();
    for (const file of files) Object.assign(file, await checkThere(call, file));
  }
  addConflicts(files);
  return report(context, files, exit, true);
}

/** Checks a module with the orchestrator. */
async function checkThere(call: Client, { content }: CheckedFile): Promise<Pick<CheckedFile, 'faults' | 'warnings'>> {
  const { faults, warnings } = await call(validateModule, { body: { content } });
  // With `exactOptionalPropertyTypes`, an absent field must be omitted.
  const toFault = ({ path, message, line, column }: (typeof faults)[number]): Fault => ({
    path,
    message,
    ...(line ? { line } : {}),
    ...(column ? { column } : {}),
  });
  return { faults: faults.map(toFault), warnings: warnings.map(toFault) };
}

async function validate(context: Context, words: string[]): Promise<Exit> {
  const { files, exit } = await checkedFiles(context, words);
  // Omits the lines around each error in a pipe, because editors parse one error per line.
  return report(context, files, exit, context.out.style.width !== null);
}

/**
 * Prints the results.
 * @param exit the exit code from reading the files
 * @param hasFrames whether to print the lines around each error
 */
function report({ out }: Context, files: readonly CheckedFile[], exit: Exit, hasFrames: boolean): Exit {
  printFaults(out, files, hasFrames);
  const faulty = files.filter(({ faults }) => faults.length > 0).length;
  if (out.json)
    out.data({
      valid: faulty === 0 && exit === exits.done,
      files: files.map(({ file, module, faults, warnings }) => ({
        file,
        name: module?.name ?? null,
        valid: faults.length === 0,
        faults,
        warnings,
      })),
    });
  else if (faulty > 0) out.note(`${faulty} of ${counted(files.length, 'module')} with errors`);
  else if (exit === exits.done) out.note(`${counted(files.length, 'module')}: no errors`);
  return exit === exits.done && faulty > 0 ? exits.failed : exit;
}

/** Prints the errors and warnings of each file like a compiler. */
export function printFaults(out: Context['out'], files: readonly CheckedFile[], hasFrames: boolean): void {
  let isFirst = true;
  for (const { file, content, faults, warnings } of files)
    for (const fault of [...faults, ...warnings]) {
      const line = faultLine(file, fault, out.style.color, warnings.includes(fault));
      const frame = hasFrames ? codeFrame(content, fault, out.style) : '';
      if (hasFrames && !isFirst) out.print('');
      isFirst = false;
      out.print(`${line}${frame === '' ? '' : `\n${frame}`}`);
    }
}
