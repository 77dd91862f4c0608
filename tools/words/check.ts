/*
 * Checks the words in code and pages: spelling, and the phrases in phrases.ts. counts.json limits the findings in each
 * folder, so that new text follows the rules although old text still has findings.
 *
 *     node tools/words/check.ts [--list FOLDER] [--write]
 *
 * `--list` prints the findings in a folder, `--write` records the current counts.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from '../suite/cli.ts';
import { proseOf, wordsOf } from './pages.ts';
import { bannedIn } from './phrases.ts';
import { textsOf, type WrittenText } from './texts.ts';

/** Files that contain banned phrases because they define or test them. */
const exempt = new Set(['tools/words/phrases.ts', 'tools/words/words.test.ts', 'docs/style.md']);
const countsFile = join(import.meta.dirname, 'counts.json');
/** Maximum number of findings to print for a folder that exceeds its limit. */
const maxPrinted = 20;

interface Finding {
  folder: string;
  text: string;
}

const { values } = parseArgs({ options: { list: { type: 'string' }, write: { type: 'boolean', default: false } } });

function readTexts(): WrittenText[] {
  const list = ['ls-files', '--cached', '--others', '--exclude-standard', '*.ts', '*.tsx', '*.md'];
  const files = execFileSync('git', list, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 })
    .trim()
    .split('\n');
  return files
    .filter((file) => !exempt.has(file) && existsSync(join(root, file)))
    .flatMap((file) => (file.endsWith('.md') ? proseOf : textsOf)(file, readFileSync(join(root, file), 'utf8')));
}

/** Returns the words that neither cspell nor dictionary.txt contains. */
function misspelled(words: ReadonlySet<string>): Set<string> {
  const args = ['--no-progress', '--no-summary', '--no-color', '--words-only', '--unique', 'stdin'];
  const { stdout, stderr, status } = spawnSync(join(root, 'node_modules/.bin/cspell'), args, {
    cwd: root,
    input: [...words].join('\n'),
    encoding: 'utf8',
  });
  // Exit code 1 means that there are unknown words.
  if (status !== 0 && status !== 1) throw new Error(`cspell failed: ${stderr}`);
  return new Set(stdout.split('\n').filter((word) => word !== ''));
}

/** Returns a file's folder in counts.json, with at most three levels: `agent/src/host`. */
const folderOf = (file: string): string => dirname(file).split('/').slice(0, 3).join('/');

function findingsOf(texts: readonly WrittenText[]): Finding[] {
  const words = texts.map((text) => ({ text, words: wordsOf(text.text) }));
  const unknown = misspelled(new Set(words.flatMap((each) => each.words)));
  return words.flatMap(({ text: { kind, file, line, text }, words }) => {
    const at = `${file}:${line}  `;
    const phrases = bannedIn(text, kind).map(({ phrase, instead }) => `"${phrase}"; write: ${instead}`);
    const spelling = words
      .filter((word) => unknown.has(word))
      .map((word) => `"${word}" is misspelled, or not American`);
    return [...phrases, ...spelling].map((fault) => ({ folder: folderOf(file), text: at + fault }));
  });
}

const byFolder = Map.groupBy(findingsOf(readTexts()), ({ folder }) => folder);
const print = (findings: readonly Finding[]) => {
  for (const { text } of findings) console.error(text);
};

if (values.list !== undefined) {
  const { list } = values;
  for (const [folder, findings] of byFolder) if (folder === list || folder.startsWith(`${list}/`)) print(findings);
} else if (values.write) {
  const counts = Object.fromEntries([...byFolder].map(([folder, { length }]) => [folder, length] as const).toSorted());
  writeFileSync(countsFile, `${JSON.stringify(counts, null, 2)}\n`);
} else {
  const counts: Record<string, number> = JSON.parse(readFileSync(countsFile, 'utf8'));
  for (const [folder, findings] of byFolder) {
    const allowed = counts[folder] ?? 0;
    if (findings.length <= allowed) continue;
    process.exitCode = 1;
    print(findings.slice(0, maxPrinted));
    console.error(
      `${folder}: ${findings.length} findings, at most ${allowed} are allowed; see docs/style.md. ` +
        `To list all: node tools/words/check.ts --list ${folder}. Add technical terms to tools/words/dictionary.txt.`,
    );
  }
}
