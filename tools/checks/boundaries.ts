// Fails if an import breaks a rule in docs/architecture.md, as defined in arrows.ts, or if there is an import cycle.
import { readFileSync } from 'node:fs';
import { join, posix, resolve } from 'node:path';
import { judge, judgeBrowserCall, judgeOwnershipCall } from './arrows.ts';
import { browserCallsOf } from './browser-calls.ts';
import { cyclesOf, folderGraph, type ImportGraph } from './cycles.ts';
import { importsOf } from './imports.ts';
import { ownershipCallsOf } from './ownership-calls.ts';
import { isTestFile, sourceFiles } from './source-files.ts';

/** Folders whose child folders must not form an import cycle. */
const layeredFolders = [
  'agent/src',
  'agent/src/converge',
  'agent/src/host',
  'agent/src/resources',
  'cli/src',
  'console/src',
  'orchestrator/src/domain',
  'orchestrator/src/http',
  'orchestrator/src/store',
  'protocol/src',
];

/**
 * Lists every import that breaks a rule and every import cycle. Each line contains the file and line, the rule, and the
 * remedy.
 * @param root folder that contains the workspaces
 */
export function wrongImports(root: string): string[] {
  const faults: string[] = [];
  const graph = new Map<string, Set<string>>();
  for (const file of sourceFiles(root)) {
    const text = readFileSync(join(root, file), 'utf8');
    const imports = importsOf(file, text);
    const found = imports.map(({ specifier, line }) => ({ line, fault: judge(file, specifier) }));
    if (file.startsWith('console/'))
      for (const { name, line } of browserCallsOf(file, text))
        found.push({ line, fault: judgeBrowserCall(file, name) });
    if (file.startsWith('agent/'))
      for (const { name, line } of ownershipCallsOf(file, text))
        found.push({ line, fault: judgeOwnershipCall(file, name) });
    for (const { line, fault } of found) if (fault !== null) faults.push(`${file}:${line}  ${fault}`);
    const relative = imports.map(({ specifier }) => specifier).filter((specifier) => specifier.startsWith('.'));
    graph.set(file, new Set(relative.map((specifier) => posix.join(posix.dirname(file), specifier))));
  }
  return [...faults, ...cycleFaults(graph)];
}

function cycleFaults(imports: ImportGraph): string[] {
  const known = new Map(
    [...imports].map(([file, targets]) => [file, new Set([...targets].filter((target) => imports.has(target)))]),
  );
  const sources = new Map([...known].filter(([file]) => !isTestFile(file)));
  return [
    ...cyclesOf(known).map(
      (cycle) => `${cycle.join(' ↔ ')}: import cycle; move the shared code into a file that imports none of them`,
    ),
    ...layeredFolders.flatMap((folder) =>
      cyclesOf(folderGraph(sources, folder)).map(
        (cycle) => `${folder}/{${cycle.join(',')}}: import cycle of folders; move the shared code into one of them`,
      ),
    ),
  ];
}

if (import.meta.main) {
  const faults = wrongImports(resolve(import.meta.dirname, '../..'));
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) {
    console.error(`\n${faults.length} wrong ${faults.length === 1 ? 'import' : 'imports'}; see docs/architecture.md`);
    process.exit(1);
  }
}
