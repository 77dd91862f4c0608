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
