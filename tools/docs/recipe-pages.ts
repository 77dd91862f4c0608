import { type ModuleDocument, parseModule } from '@muster/protocol/module';

/** Generates parts of the recipe pages: the parameter table and the source of each module. */

const begin = (file: string): string => `<!-- from ${file}, by node tools/checks/docs.ts --write -->`;
const end = '<!-- until here -->';

/**
 * Updates the parameters and the module in a page, and preserves the handwritten text.
 * @param page the text of the page, which contains both pairs of marker lines
 * @param file the module's file name, in the page's folder
 */
export function recipePage(page: string, file: string, source: string): string {
  const [before, rest] = parted(page, begin(file), file);
  const [, after] = parted(rest, end, file);
  const parsed = parseModule(source);
  if (!parsed.ok) throw new Error(`${file}: ${parsed.faults.map(({ message }) => message).join('; ')}`);
  const made = [
    '## Parameters',
    ...parameterTable(parsed.module.parameters),
    '## The module',
    `[${file}](${file}), ready for upload:`,
    `\`\`\`yaml\n${source.trimEnd()}\n\`\`\``,
  ];
  return `${before}${begin(file)}\n${made.join('\n\n')}\n\n${end}${after}`;
}

function parted(text: string, mark: string, file: string): [string, string] {
  const at = text.indexOf(mark);
  if (at === -1) throw new Error(`the page of ${file} lacks the line ${mark}; restore it`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}

function parameterTable(parameters: ModuleDocument['parameters']): string[] {
  const names = Object.entries(parameters);
  if (names.length === 0) return ['The module has no parameters.'];
  const rows = names.map(([name, { type, default: value, description }]) => {
    const shown = value === null ? 'none; required' : defaultOf(value);
    return `| \`${name}\` | ${type} | ${shown} | ${(description ?? '').replaceAll('|', '\\|')} |`;
  });
  return [['| parameter | type | default | description |', '|---|---|---|---|', ...rows].join('\n')];
}

function defaultOf(value: unknown): string {
  if (value === '') return 'empty';
  if (Array.isArray(value) && value.some((element) => typeof element === 'object')) return 'see the module';
  const text = typeof value === 'string' ? value : JSON.stringify(value).replaceAll(',', ', ');
  return `\`${text.replaceAll('|', '\\|')}\``;
}
