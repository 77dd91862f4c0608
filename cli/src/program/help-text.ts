/** Columns of help output that does not go to a terminal. */
export const pipedWidth = 100;

/**
 * Wraps the prose in a help text. Keeps lists and examples, which are indented, unchanged.
 * @param width columns of the terminal
 */
export function wrapProse(text: string, width: number): string {
  const lines: string[] = [];
  let paragraph: string[] = [];
  const flush = () => {
    let line = '';
    for (const word of paragraph.join(' ').split(' ')) {
      if (line !== '' && line.length + 1 + word.length > width) {
        lines.push(line);
        line = word;
      } else line = line === '' ? word : `${line} ${word}`;
    }
    if (line !== '') lines.push(line);
    paragraph = [];
  };
  for (const line of text.split('\n')) {
    if (/^\S/.test(line) && !line.endsWith(':')) {
      paragraph.push(line);
      continue;
    }
    flush();
    lines.push(line);
  }
  flush();
  return lines.join('\n');
}

/** Returns the part of a command's description that fits into a list of commands. */
export const inBrief = (description: string): string => description.split(/[;:] /)[0] as string;

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Moves the groups of options in the help of the program behind the commands. */
export function commandsFirst(help: string): string {
  const sections = help.trimEnd().split('\n\n');
  const areOptions = (section: string): boolean => /^.*:\n {2}-/.test(section);
  return `${[...sections.filter((each) => !areOptions(each)), ...sections.filter(areOptions)].join('\n\n')}\n`;
}
