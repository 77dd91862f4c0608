import type { Report } from '@muster/protocol/wire';

/**
 * Taking values of secrets out of what agents report. Agents hide them themselves; this is for the case that one does
 * not, or that a program on its machine says one aloud.
 */

/** What stands in place of a value. */
const hidden = '(sensitive)';
/** A value shorter than that is in many a text by chance. */
const shortestValue = 4;
/** The same for a line of a value that has many: it may be `}`, or `-----`. */
const shortestLine = 8;

/** A value as programs write it. */
function formsOf(value: string): string[] {
  const bytes = Buffer.from(value);
  // Of an encoding of a longer text that begins with the value, all but the last characters are the same.
  const base64 = bytes.toString('base64').replace(/=+$/, '');
  return [
    value,
    value.trim(),
    JSON.stringify(value).slice(1, -1),
    encodeURIComponent(value.toWellFormed()),
    base64,
    bytes.toString('base64url'),
    bytes.toString('hex'),
  ];
}

/**
 * @param values that must not be told
 * @returns the text with every value in it replaced, also where it is quoted as JSON or in an address, or in base64
 */
export function createScrub(values: Iterable<string>): (text: string) => string {
  const forms = new Set<string>();
  for (const value of values) {
    for (const form of formsOf(value)) if (form.length >= shortestValue) forms.add(form);
    // In a diff, each line of a value stands by itself.
    const lines = value.split(/\r?\n/);
    if (lines.length > 1) for (const line of lines) if (line.trim().length >= shortestLine) forms.add(line.trim());
  }
  // The longest first: one form may be part of another.
  const ordered = [...forms].sort((a, b) => b.length - a.length);
  return (text) => {
    let scrubbed = text;
    for (const form of ordered) if (scrubbed.includes(form)) scrubbed = scrubbed.replaceAll(form, hidden);
    return scrubbed;
  };
}

/** A report with its free texts scrubbed; names and identities are what modules say, and hold no secret. */
export function scrubReport(report: Report, scrub: (text: string) => string): Report {
  const orNull = (text: string | null) => (text === null ? null : scrub(text));
  switch (report.type) {
    case 'accepted':
      return report;
    case 'output':
      return { ...report, stdout: scrub(report.stdout), stderr: scrub(report.stderr) };
    case 'finished':
      return { ...report, error: orNull(report.error) };
    case 'results':
      return {
        ...report,
        results: report.results.map((result) => ({
          ...result,
          message: orNull(result.message),
          diff: orNull(result.diff),
          changes: result.changes.map((change) => ({ ...change, from: orNull(change.from), to: orNull(change.to) })),
        })),
      };
  }
}
