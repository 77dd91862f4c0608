import { visibleJson, visibleLine, visibleOnceParsed } from '@muster/protocol';
import { type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import { requestFields } from './request-fields.ts';

export interface LogDestination {
  write(text: string): unknown;
  /** Called after warnings and errors. */
  flush?(): void;
}

/** Maximum number of characters to buffer. */
const maxGathered = 64 * 1024;

/**
 * Buffers lines and writes them together at the end of the event-loop turn, because a system call costs more than
 * formatting a line. Call `flush` before the process exits.
 */
export function gatheringLines(destination: LogDestination): Required<LogDestination> {
  let gathered = '';
  const flush = () => {
    if (gathered === '') return;
    const text = gathered;
    gathered = '';
    destination.write(text);
  };
  return {
    write(text) {
      if (gathered === '') setImmediate(flush);
      gathered += text;
      if (gathered.length > maxGathered) flush();
    },
    flush,
  };
}

/**
 * Creates the process log. Escapes control characters, bidi marks, and line separators, so that untrusted text (names,
 * addresses, errors) cannot control a terminal or imitate a log line.
 * @param destination receives lines with their newlines
 */
export function logTo(
  destination: LogDestination,
  { format, level, color }: { format: 'text' | 'json'; level: string; color: boolean },
): Logger {
  const options = { level, base: null, mixin: requestFields };
  if (format === 'json') return pino(options, streamTo(destination, visibleJson));
  const prettify = pretty.prettyFactory({
    colorize: color,
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'part,event',
    singleLine: true,
    // Writes fields as JSON, which contains no newlines. pino-pretty would write fields with these names unescaped.
    messageFormat: (line, key) => asLine(line[key]),
    customPrettifiers: { name: asLine, hostname: asLine, caller: asLine, pid: asLine },
  });
  return pino(
    options,
    streamTo(destination, (line) => prettify(visibleOnceParsed(line)) ?? ''),
  );
}

const warning = pino.levels.values.warn as number;

function streamTo(destination: LogDestination, format: (line: string) => string) {
  return {
    // Makes pino set `lastLevel` before each line.
    [pino.symbols.needsMetadataGsym]: true,
    lastLevel: 0,
    write(line: string) {
      destination.write(format(line));
      if (this.lastLevel >= warning) destination.flush?.();
    },
  };
}

const asLine = (value: unknown): string => visibleLine(String(value));
