import type { AnswerOf, validateModule } from '@muster/protocol/http';
import { LineCounter, parseDocument } from 'yaml';
import { faultText, syntaxText } from './fault-text.ts';
import { isTooDeep } from './outline.ts';

export type Fault = AnswerOf<typeof validateModule>['faults'][number];

export interface Mark {
  /** Start offset in the text. */
  readonly from: number;
  readonly to: number;
  readonly line: number;
  readonly column: number;
  readonly severity: 'error' | 'warning';
  readonly message: string;
  /** JSON pointer; empty for a syntax error or an error that concerns the whole module. */
  readonly path: string;
}

/** Maximum number of errors to mark in the text. */
export const maxMarks = 200;
/** Maximum length of text that the browser parses. Only the orchestrator validates longer text. */
const maxLocalLength = 256 * 1024;

const lineStarts = (text: string): number[] => {
  const starts = [0];
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
  return starts;
};

/** Returns the end of the range to underline: the end of the expression, of the word, or of the line. */
function extent(text: string, from: number, lineEnd: number): number {
  const rest = text.slice(from, Math.min(lineEnd, from + 400));
  const token = /^(?:\$\{\{.*?\}\}|"(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[\w./${}-]+)/.exec(rest)?.[0].length ?? 1;
  return Math.min(lineEnd, from + token);
}

/**
 * Returns the marks of errors in text order. An error without a position is marked on the first line, an error after the
 * end of the text on the last line.
 */
export function marksOf(text: string, faults: readonly Fault[], warnings: readonly Fault[] = []): Mark[] {
  const starts = lineStarts(text);
  const mark =
    (severity: Mark['severity']) =>
    (fault: Fault): Mark => {
      const line = Math.min(Math.max(fault.line ?? 1, 1), starts.length);
      const start = starts[line - 1] as number;
      const end = line < starts.length ? (starts[line] as number) - 1 : text.length;
      const from = Math.min(start + Math.max((fault.column ?? 1) - 1, 0), end);
      const to = extent(text, from, end);
      return { from, to, line, column: from - start + 1, severity, message: faultText(fault), path: fault.path };
    };
  const marks = [...faults.map(mark('error')), ...warnings.map(mark('warning'))];
  return marks.sort((a, b) => a.from - b.from || a.severity.localeCompare(b.severity)).slice(0, maxMarks);
}

/** Returns the YAML syntax errors in the text. */
export function syntaxFaults(text: string): Fault[] {
  if (text.length > maxLocalLength) return [];
  if (isTooDeep(text)) return [{ path: '', message: 'brackets are nested too deeply', line: 1, column: 1 }];
  const lines = new LineCounter();
  try {
    const { errors } = parseDocument(text, { lineCounter: lines, prettyErrors: false, logLevel: 'silent' });
    return errors.slice(0, maxMarks).map(({ code, message, pos: [at] }) => {
      const { line, col } = lines.linePos(at);
      return { path: '', message: syntaxText(code, message), line, column: col };
    });
  } catch (error) {
    return [{ path: '', message: (error as Error).message, line: 1, column: 1 }];
  }
}

/** The orchestrator's result of validating a text. */
export interface Verdict {
  readonly text: string;
  readonly faults: readonly Fault[];
  readonly warnings: readonly Fault[];
}

export interface Judgement {
  readonly marks: readonly Mark[];
  /**
   * `checking`: the orchestrator has not validated this text yet, so the marks show only syntax errors or errors in an
   * earlier version.
   */
  readonly state: 'valid' | 'faulty' | 'checking';
}

/** Combines local syntax errors with the orchestrator's verdict, which may be for an earlier version of the text. */
export function judge(text: string, verdict: Verdict | null): Judgement {
  const syntax = syntaxFaults(text);
  if (syntax.length > 0) return { marks: marksOf(text, syntax), state: 'faulty' };
  if (verdict === null) return { marks: [], state: 'checking' };
  const marks = marksOf(text, verdict.faults, verdict.warnings);
  if (verdict.text !== text) return { marks, state: 'checking' };
  return { marks, state: verdict.faults.length > 0 ? 'faulty' : 'valid' };
}
