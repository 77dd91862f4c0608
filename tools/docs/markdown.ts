/** Finds links, anchors, and commands in a documentation page. Positions are line numbers, from 1. */

export interface Link {
  target: string;
  line: number;
}

/** A command line in a code block or between backticks. */
export interface Command {
  /**
   * The words of the command, split as in a shell, including quotes. Omits a comment, and a pipe with the commands
   * after it.
   */
  words: string[];
  line: number;
}

interface Line {
  text: string;
  line: number;
  /** Whether the line is in a fenced block. */
  code: boolean;
}

/** Returns the lines of a page without the fence lines of code blocks. */
export function linesOf(markdown: string): Line[] {
  const lines: Line[] = [];
  let fence: string | null = null;
  markdown.split('\n').forEach((text, index) => {
    const mark = /^\s*(`{3,}|~{3,})/.exec(text)?.[1];
    if (mark !== undefined && (fence === null || (mark[0] === fence[0] && mark.length >= fence.length)))
      fence = fence === null ? mark : null;
    else lines.push({ text, line: index + 1, code: fence !== null });
  });
  return lines;
}

/** Finds every link, image, and link definition outside code. */
export function linksOf(markdown: string): Link[] {
  const links: Link[] = [];
  for (const { text, line, code } of linesOf(markdown)) {
    if (code) continue;
    const prose = text.replace(/`[^`]*`/g, '');
    for (const match of prose.matchAll(/\]\(\s*<?([^)\s>]+)>?[^)]*\)/g))
      links.push({ target: match[1] as string, line });
    const definition = /^\s*\[[^\]]+\]:\s*<?([^\s>]+)/.exec(prose);
    if (definition) links.push({ target: definition[1] as string, line });
  }
  return links;
}

/** Finds every text between backticks outside code blocks that has the form of a path to a source file. */
export function codePathsOf(markdown: string): Link[] {
  return linesOf(markdown).flatMap(({ text, line, code }) =>
    code
      ? []
      : [...text.matchAll(/`([a-z][\w.-]*(?:\/[\w.-]+)+\.tsx?)`/g)].map(([, target]) => ({ target: target!, line })),
  );
}

/** Returns a heading's anchor, without the suffix for duplicates. */
export const slugOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

/** Returns the anchors of the headings on a page, named as in common renderers. */
export function anchorsOf(markdown: string): Set<string> {
  const anchors = new Set<string>();
  for (const { text, code } of linesOf(markdown)) {
    const heading = code ? null : /^#{1,6}\s+(.*?)\s*#*\s*$/.exec(text);
    if (!heading) continue;
    const name = slugOf(heading[1] as string);
    let anchor = name;
    for (let count = 1; anchors.has(anchor); count++) anchor = `${name}-${count}`;
    anchors.add(anchor);
  }
  return anchors;
}

/**
 * Finds command lines that begin with one of `programs`, after an optional prompt.
 * @param programs program names, such as `npm`, `npx`, or `muster`
 */
export function commandsOf(markdown: string, programs: readonly string[]): Command[] {
  const commands: Command[] = [];
  const add = (text: string, line: number) => {
    const words: string[] = [];
    for (const word of text
      .trim()
      .replace(/^([a-z][\w-]*@[\w-]+:[^\s$#]*)?[$#] /, '')
      .replace(/^sudo (?!-)/, '')
      .match(/"[^"]*"|'[^']*'|\S+/g) ?? []) {
      if (/^(#|\||>|<<|&|;|\\$)/.test(word)) break;
      words.push(word);
    }
    if (programs.includes(words[0] ?? '')) commands.push({ words, line });
  };
  for (const { text, line, code } of linesOf(markdown)) {
    if (code) for (const part of text.split(/&&|;/)) add(part, line);
    else for (const span of text.matchAll(/`([^`]+)`/g)) add(span[1] as string, line);
  }
  return commands;
}

/** Finds fenced code blocks that declare a language. */
export function blocksOf(markdown: string): { language: string; source: string; line: number }[] {
  const blocks: { language: string; source: string; line: number }[] = [];
  const fences = /^(`{3,}|~{3,})([\w-]+)[^\n]*\n([\s\S]*?)^\1\s*$/gm;
  for (const { 2: language, 3: source, index } of markdown.matchAll(fences))
    blocks.push({
      language: language as string,
      source: source as string,
      line: markdown.slice(0, index).split('\n').length,
    });
  return blocks;
}
