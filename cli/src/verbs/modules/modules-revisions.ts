import type { Client } from '@muster/protocol/client';
import { getModule, listModuleRevisions } from '@muster/protocol/http';
import { type ModuleFile, parseModule } from '@muster/protocol/module';
import type { Command } from 'commander';
import { bytesText } from '../../../../client/src/byte-text.ts';
import { type FileChange, fileChanges } from '../../../../client/src/file-changes.ts';
import type { Context } from '../../context/context.ts';
import type { Act } from '../../context/verb.ts';
import { type Exit, exits, usageError } from '../../exit.ts';
import { operatorNames } from '../../text/operator-names.ts';
import { diffLines } from '../../text/resource-text.ts';
import { sanitiseLine } from '../../text/sanitize.ts';
import { type Style, when } from '../../text/style.ts';
import { parseCount } from '../../text/values.ts';
import { folderAt, hashedFiles } from './module-folder.ts';
import { missingModule, readSource } from './modules-source.ts';

/** Registers the `muster modules` commands for revisions. */
export function registerRevisions(command: Command, act: Act): void {
  command
    .command('history')
    .description('List the revisions of a module, newest first')
    .argument('<name>')
    .option('--limit <n>', 'Maximum number', '50')
    .addHelpText('after', '\nExample:\n  $ muster modules history motd')
    .action(act(history));
  command
    .command('diff')
    .description('Compare two revisions, or one with a file or folder')
    .argument('<name>')
    .argument('[from]', 'Revision to compare; default: the one before the newest; with --file, the newest')
    .argument('[to]', 'Revision to compare with; default: the newest')
    .option('--file <file>', 'Compare with this file or folder; - is standard input')
    .option('-U, --context <n>', 'Lines of context', '3')
    .option('--exit-code', 'Exit with 3 when they differ')
    .addHelpText(
      'after',
      '\nExamples:\n  $ muster modules diff motd\n  $ muster modules diff motd 2 5\n  $ muster modules diff motd --file motd.yml --exit-code',
    )
    .action(act(diff));
}

async function history(context: Context, name: string, options: { limit: string }): Promise<undefined> {
  const { out } = context;
  const limit = parseCount('--limit', options.limit, 1, 500);
  const { call } = await context.connect();
  const query = { limit: String(limit) };
  const revisions = await call(listModuleRevisions, { params: { name }, query, atMost: limit }).catch(
    (error: unknown) => missingModule(call, name, undefined, error),
  );
  if (out.json) return out.data(revisions);
  const names = await operatorNames(call);
  out.table(
    [
      { heading: 'REVISION', text: ({ revision }) => String(revision), align: 'right' },
      { heading: 'UPLOADED', text: ({ uploaded_at }) => when(uploaded_at, out.style) },
      { heading: 'BY', text: ({ uploaded_by }) => names.get(uploaded_by) ?? uploaded_by, flexible: true },
      {
        heading: 'DIGEST',
        text: ({ digest }) => (out.style.width === null || out.style.verbose ? digest : digest.slice(0, 19)),
        extra: true,
      },
    ],
    revisions,
  );
  if (revisions.length > 1) out.note(out.noteColor.dim(`\nTo see the last change: muster modules diff ${name}`));
}

interface DiffOptions {
  file?: string;
  context: string;
  exitCode?: boolean;
}

interface Side {
  readonly label: string;
  readonly revision: number | null;
  readonly file: string | null;
  readonly content: string;
  /** Files next to the module; null for a module without a folder, which is compared without files. */
  readonly files: readonly ModuleFile[] | null;
}

const revisionOf = (typed: string): number => parseCount('the revision', typed, 1, 999_999_999);

async function stored(call: Client, name: string, revision?: number): Promise<Side> {
  const module = await call(getModule, {
    params: { name },
    query: revision === undefined ? {} : { revision: String(revision) },
  }).catch((error: unknown) => missingModule(call, name, revision, error));
  return {
    label: `${name}, revision ${module.revision}`,
    revision: module.revision,
    file: null,
    content: module.content,
    files: module.files ?? [],
  };
}

async function local(context: Context, name: string, typed: string): Promise<Side> {
  const folder = await folderAt(typed);
  const { file, bytes } = folder === null ? await readSource(context, typed) : { file: typed, bytes: folder.bytes };
  const parsed = parseModule(bytes, folder?.folder);
  // A file with errors can be compared, but a file with another module is a mistake.
  if (parsed.ok && parsed.module.name !== name)
    throw usageError(
      `${file} contains the module ${JSON.stringify(parsed.module.name)}`,
      `To compare with that module: muster modules diff ${parsed.module.name} --file ${file}`,
    );
  const files = folder === null ? null : await hashedFiles(folder);
  return { label: file, revision: null, file, content: new TextDecoder().decode(bytes), files };
}

async function diff(
  context: Context,
  name: string,
  from: string | undefined,
  to: string | undefined,
  options: DiffOptions,
): Promise<Exit> {
  const { out } = context;
  const { color } = out.style;
  const around = parseCount('--context', options.context, 0, 10_000);
  const first = from === undefined ? undefined : revisionOf(from);
  const second = to === undefined ? undefined : revisionOf(to);
  if (options.file !== undefined && second !== undefined)
    throw usageError('--file replaces the second revision', 'Drop one of them.');
  const mine = options.file === undefined ? undefined : await local(context, name, options.file);
  const { call } = await context.connect();
  const newer = mine ?? (await stored(call, name, second));
  if (mine === undefined && first === undefined && newer.revision === 1) {
    if (out.json) out.data({ name, from: null, to: side(newer), equal: true, diff: '', files: [] });
    else out.note(`${name} has only one revision. To see it: muster modules show ${name}`);
    return exits.done;
  }
  const older = await stored(call, name, first ?? (mine === undefined ? (newer.revision ?? 2) - 1 : undefined));
  const files = newer.files === null ? [] : fileChanges(older.files ?? [], newer.files);
  const isSameText = older.content === newer.content;
  const equal = isSameText && files.length === 0;
  const { createTwoFilesPatch } = await import('diff');
  const text = isSameText
    ? ''
    : createTwoFilesPatch(older.label, newer.label, older.content, newer.content, undefined, undefined, {
        context: around,
      }).replace(/^=+\n/, '');
  if (out.json) {
    const changed = files.map(({ path, change }) => ({ path, change }));
    out.data({ name, from: side(older), to: side(newer), equal, diff: text, files: changed });
  } else if (equal) out.note(`${older.label} and ${newer.label} are the same.`);
  else {
    const lines = isSameText ? [] : diffLines(text, color, true).map((line) => line.replace(/^ {6}/, ''));
    out.print([...lines, ...files.map((change) => changeLine(change, color))].join('\n'));
  }
  return !equal && options.exitCode ? exits.pending : exits.done;
}

const side = ({ revision, file }: Side) => ({ revision, file });

/** Returns a line such as `~ files/app.bin  3.4 MiB → 3.5 MiB`. */
function changeLine({ path, change, from, to }: FileChange, color: Style['color']): string {
  const sizes = [from, to].flatMap((file) =>
    file === null ? [] : `${bytesText(file.size)}${file.executable ? ', executable' : ''}`,
  );
  const line = `${{ added: '+', removed: '-', changed: '~' }[change]} ${sanitiseLine(path)}  ${sizes.join(' → ')}`;
  return { added: color.green, removed: color.red, changed: color.yellow }[change](line);
}
