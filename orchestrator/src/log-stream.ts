import { visibleJson, visibleLine, visibleOnceParsed } from '@muster/protocol';
import { type Logger, pino } from 'pino';
import pretty from 'pino-pretty';
import { requestFields } from './request-fields.ts';

/**
 * Creates the log of the process. Escapes control characters, bidi marks, and line separators, so that untrusted text
 * (names, addresses, errors) cannot control a terminal or imitate a log line.
 * @param destination receives lines with their newlines
 */
export function logTo(
  destination: { write(text: string): unknown },
  { format, level, color }: { format: 'text' | 'json'; level: string; color: boolean },
): Logger {
  const options = { level, base: null, mixin: requestFields };
  if (format === 'json') return pino(options, { write: (line: string) => void destination.write(visibleJson(line)) });
  const prettify = pretty.prettyFactory({
    colorize: color,
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'part,event',
    singleLine: true,
    // Fields are written as JSON, which has no newlines. pino-pretty would write fields with these names unescaped.
    messageFormat: (line, key) => asLine(line[key]),
    customPrettifiers: { name: asLine, hostname: asLine, caller: asLine, pid: asLine },
  });
  return pino(options, { write: (line: string) => void destination.write(prettify(visibleOnceParsed(line)) ?? '') });
}

const asLine = (value: unknown): string => visibleLine(String(value));
