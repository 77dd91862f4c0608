import { kinds } from '../kinds.ts';
import { quoted } from '../nearest.ts';
import { type Candidate, type Outline, outline, type Reference } from '../outline.ts';
import type { Path } from '../source/tree.ts';
import { folderLimits, type ModuleFiles } from './module-file.ts';
import { sourceFault } from './source-files.ts';

/** A module's folder. */
export interface ModuleFolder {
  readonly files: ModuleFiles;
  /** Returns the text of a file that is used as a template; null if the file is too large or not UTF-8. */
  textOf(path: string): string | null;
}

const candidatesOf = ({ resources }: Outline): readonly Candidate[] =>
  resources.flatMap(({ candidates }) => candidates);

/** Returns the template references that are not the ID of a template in the module, and therefore refer to files. */
function templateReferences(outlined: Outline, files: ModuleFiles): Reference[] {
  const ids = new Set(outlined.templates.map(({ id }) => id));
  return candidatesOf(outlined).flatMap(({ template }) =>
    template !== undefined && !ids.has(template.id) && files.has(template.id) ? [template] : [],
  );
}

/**
 * Returns the files that a module uses as templates.
 * @param value the whole module as written
 */
export const templateFiles = (value: unknown, files: ModuleFiles): string[] => [
  ...new Set(templateReferences(outline(value), files).map(({ id }) => id)),
];

/**
 * Adds the files that are used as templates to the templates of the outline. Reports files that cannot be templates.
 */
export function withTemplateFiles(
  outlined: Outline,
  { files, textOf }: ModuleFolder,
  fault: (path: Path, message: string) => void,
): Outline {
  const templates = new Map<string, Outline['templates'][number]>();
  let bytes = 0;
  for (const { id, path } of templateReferences(outlined, files)) {
    if (templates.has(id)) continue;
    bytes += files.get(id)?.size ?? 0;
    const content = bytes > folderLimits.templatesBytes ? null : textOf(id);
    if (content === null)
      fault(
        path,
        `the file ${quoted(id)} cannot be a template: templates are UTF-8 texts of at most ${folderLimits.templateBytes / 1024} KiB, and ${folderLimits.templatesBytes / 1024 / 1024} MiB together`,
      );
    templates.set(id, { id, when: {}, content: content ?? '', path });
  }
  return { ...outlined, templates: [...outlined.templates, ...templates.values()] };
}

interface FileFindings {
  fault(path: Path, message: string): void;
  warning(path: Path, message: string): void;
}

/** Reports sources that do not exist, and warns about files that no resource uses, except for those below `tests`. */
export function checkFiles(outlined: Outline, files: ModuleFiles, { fault, warning }: FileFindings): void {
  const used = new Set<string | undefined>();
  /** Prefixes of used paths. */
  const prefixes = new Set(['tests/']);
  let hints = 100;
  for (const { type, body, template, path } of candidatesOf(outlined)) {
    used.add(template?.id);
    const { sourced } = kinds[type];
    if (sourced === null || typeof body.source !== 'string') continue;
    const start = body.source.indexOf('${{');
    if (start !== -1) prefixes.add(body.source.slice(0, start));
    else if (sourced === 'directory') prefixes.add(`${body.source}/`);
    else used.add(body.source);
    const missing = start === -1 ? sourceFault(sourced, body.source, files, hints > 0) : undefined;
    if (missing === undefined) continue;
    hints -= 1;
    fault([...path, 'source'], missing);
  }
  if (prefixes.size > maximumPrefixes) return;
  const starts = [...prefixes];
  const unused = [...files.keys()].filter(
    (path) => !used.has(path) && !starts.some((prefix) => path.startsWith(prefix)),
  );
  for (const path of unused.slice(0, maximumWarnings)) warning([], `no resource uses the file ${quoted(path)}`);
  const more = unused.length - maximumWarnings;
  if (more > 0) warning([], `no resource uses ${more} more files`);
}

const maximumWarnings = 20;
/** Number of sources above which unused files are not reported, because each file is compared with each source. */
const maximumPrefixes = 200;
