import { join } from 'node:path';
import type { Fault } from '@muster/protocol';
import { ApiError, type Client } from '@muster/protocol/client';
import { getModule, getModuleFile, listModules, type Module, removeModule, uploadModule } from '@muster/protocol/http';
import { moduleFileName, moduleJsonSchema, parseModule } from '@muster/protocol/module';
import { bytesText } from '../../../../client/src/byte-text.ts';
import type { Context } from '../../context/context.ts';
import type { Register } from '../../context/verb.ts';
import { eachNamed, removeEach } from '../../execution/each.ts';
import { CliError, type Exit, exits } from '../../exit.ts';
import { codeFrame } from '../../text/code-frame.ts';
import { faultLine } from '../../text/fault-text.ts';
import { operatorNames } from '../../text/operator-names.ts';
import { sanitise, sanitiseLine } from '../../text/sanitize.ts';
import { counted, when } from '../../text/style.ts';
import { parseCount } from '../../text/values.ts';
import { folderAt, type LocalFolder, packFolder, writeFolder } from './module-folder.ts';
import { registerChecks } from './modules-check.ts';
import { registerDeps } from './modules-deps.ts';
import { registerRevisions } from './modules-revisions.ts';
import { missingModule, onlyOneStdin, readSource, requiredFirst, suggestModule } from './modules-source.ts';
import { registerTests } from './modules-test.ts';
import { registerTrials } from './modules-trial.ts';

export const register: Register = (command, act) => {
  command
    .command('upload')
    .description('Check modules and upload them; an existing module gets a new revision')
    .argument('<files...>', 'YAML files, or folders with module.yml and its files; - is standard input')
    .addHelpText('after', '\nExamples:\n  $ muster modules upload motd.yml\n  $ muster modules upload website/')
    .action(act(upload));
  command
    .command('list')
    .description('List modules')
    .addHelpText('after', '\nExample:\n  $ muster modules list')
    .action(act(list));
  command
    .command('show')
    .description('Print the content of a module')
    .argument('<name>')
    .option('--revision <n>', 'An older revision')
    .addHelpText('after', '\nExample:\n  $ muster modules show motd > motd.yml')
    .action(act(show));
  command
    .command('remove')
    .description('Remove modules; their resources stay on machines until the next apply there')
    .argument('<names...>')
    .option('-y, --yes', 'Do not ask for confirmation')
    .addHelpText('after', '\nExample:\n  $ muster modules remove motd')
    .action(act(remove));
  command
    .command('download')
    .description('Save a module to a folder: module.yml and its other files')
    .argument('<name>')
    .requiredOption('-o, --output <directory>', 'The folder to create; it must be empty if it exists')
    .option('--revision <n>', 'An older revision')
    .addHelpText('after', '\nExample:\n  $ muster modules download website -o website/')
    .action(act(download));
  command
    .command('schema')
    .description('Print the JSON Schema of modules, for editors')
    .addHelpText('after', '\nExample:\n  $ muster modules schema > module.schema.json')
    .action(act(schema));
  registerRevisions(command, act);
  registerChecks(command, act);
  registerDeps(command, act);
  registerTrials(command, act);
  registerTests(command, act);
};

/** Contains only the number of errors, because they have already been printed. */
class FaultyModule extends CliError {
  constructor(file: string, faults: readonly Fault[]) {
    super(
      exits.failed,
      'module_invalid',
      `${counted(faults.length, 'error')} in ${file}`,
      'Fix the errors at the positions above.',
      {
        faults,
      },
    );
  }
}

async function upload(context: Context, files: string[]): Promise<Exit> {
  const { out } = context;
  onlyOneStdin(files);
  const uploaded: unknown[] = [];
  const exit = await eachNamed(context, await requiredFirst(files), async (name) => {
    const local = await folderAt(name);
    const { file, bytes } =
      local === null ? await readSource(context, name) : { file: join(name, moduleFileName), bytes: local.bytes };
    // Checks locally first with the orchestrator's rules, so that a typo is reported without a sign-in.
    const parsed = parseModule(bytes, local?.folder);
    for (const warning of parsed.warnings) out.note(faultLine(file, warning, out.noteColor, true));
    const content = new TextDecoder().decode(bytes);
    if (!parsed.ok) throw errorOfFaults(context, file, content, parsed.faults);
    const { call } = await context.connect();
    try {
      const module = await (local === null
        ? call(uploadModule, { body: { name: parsed.module.name, content } })
        : uploadFolder(context, call, local));
      uploaded.push(module);
      if (out.json) return;
      const { revision } = await call(getModule, { params: { name: module.name } });
      out.print(
        `Uploaded ${out.style.color.bold(sanitiseLine(module.name))} from ${sanitiseLine(file)}, now revision ${revision}.`,
      );
    } catch (error) {
      if (error instanceof ApiError && error.problem.code === 'module_invalid' && error.problem.errors)
        throw errorOfFaults(context, file, content, error.problem.errors);
      throw error;
    }
  });
  if (out.json) out.data(uploaded);
  return exit;
}

/** Uploads a folder, with its progress on a terminal. */
async function uploadFolder({ out }: Context, call: Client, local: LocalFolder): Promise<Module> {
  const progress = out.progress(`Uploading ${local.directory}`);
  const total = Math.max(1, local.size);
  const packed = (done: number) =>
    progress.update(
      `Uploading ${local.directory}: ${Math.floor((100 * done) / total)} % of ${Math.ceil(total / 1024 / 1024)} MiB`,
    );
  try {
    return await call(uploadModule, { archive: () => packFolder(local, packed) });
  } finally {
    progress.end();
  }
}

/**
 * Prints the errors in the format of a compiler and, on a terminal, the lines around them. With `--json`, only the
 * error contains them.
 */
function errorOfFaults({ out }: Context, file: string, content: string, faults: readonly Fault[]): CliError {
  if (out.json) return new FaultyModule(file, faults);
  const { width } = out.style;
  for (const fault of faults) {
    out.note(faultLine(file, fault, out.noteColor));
    const frame = width === null ? '' : codeFrame(content, fault, { color: out.noteColor, width });
    if (frame !== '') out.note(frame);
  }
  const { exit, code, message, remedy } = new FaultyModule(file, faults);
  return new CliError(exit, code, message, remedy);
}

async function list(context: Context): Promise<undefined> {
  const { out } = context;
  const { call } = await context.connect();
  const modules = await call(listModules, { all: true });
  if (out.json) return out.data(modules);
  if (modules.length === 0) return out.note('There are no modules yet. Upload one: muster modules upload FILE');
  const names = await operatorNames(call);
  out.table(
    [
      { heading: 'NAME', text: ({ name }) => name, flexible: true, paint: (text, _, { color }) => color.bold(text) },
      { heading: 'UPLOADED', text: ({ uploaded_at }) => when(uploaded_at, out.style) },
      { heading: 'BY', text: ({ uploaded_by }) => names.get(uploaded_by) ?? uploaded_by, flexible: true },
    ],
    modules,
  );
}

async function show(context: Context, name: string, options: { revision?: string }): Promise<undefined> {
  const { out } = context;
  const revision =
    options.revision === undefined ? undefined : parseCount('--revision', options.revision, 1, 999_999_999);
  const { call } = await context.connect();
  const module = await call(getModule, {
    params: { name },
    query: revision === undefined ? {} : { revision: String(revision) },
  }).catch((error: unknown) => missingModule(call, name, revision, error));
  if (out.json) out.data(module);
  // A pipe or a file receives the exact bytes; a terminal receives escaped text.
  else {
    out.raw(out.style.width === null ? module.content : sanitise(module.content));
    // Standard output contains only the content of the module.
    for (const { path, size, executable } of module.files ?? [])
      out.note(out.noteColor.dim(`${sanitiseLine(path)}  ${bytesText(size)}${executable ? ', executable' : ''}`));
  }
}

async function download(
  context: Context,
  name: string,
  { output, revision }: { output: string; revision?: string },
): Promise<undefined> {
  const { out } = context;
  const number = revision === undefined ? undefined : parseCount('--revision', revision, 1, 999_999_999);
  const { call } = await context.connect();
  const module = await call(getModule, {
    params: { name },
    query: number === undefined ? {} : { revision: String(number) },
  }).catch((error: unknown) => missingModule(call, name, number, error));
  const files = module.files ?? [];
  await writeFolder(output, module.content, files, async (path) => {
    const query = { path, revision: String(module.revision) };
    return (await call(getModuleFile, { params: { name }, query })).body;
  });
  if (out.json) out.data({ name, revision: module.revision, directory: output, files });
  else
    out.print(
      `Wrote ${sanitiseLine(name)}, revision ${module.revision}, with ${counted(files.length, 'file')} to ${sanitiseLine(output)}.`,
    );
}

async function remove(context: Context, names: string[], { yes }: { yes?: boolean }): Promise<Exit> {
  const { call } = await context.connect();
  return removeEach(context, names, { yes, noun: 'module' }, (name) =>
    call(removeModule, { params: { name } }).catch((error: unknown) => suggestModule(call, name, error)),
  );
}

async function schema({ out }: Context): Promise<undefined> {
  out.data(moduleJsonSchema());
}
