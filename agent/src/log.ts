import { visibleJson, visibleLine } from '@muster/protocol';
import type { Log } from '../../lib/src/log.ts';

/** A small logger, because a logging library would use more memory than the whole connection. */

export type LogFormat = 'json' | 'text';
export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

const levels: readonly LogLevel[] = ['debug', 'info', 'warn', 'error'];

/**
 * Creates a logger.
 * @param options `write` receives one line with its newline; `now` returns milliseconds since the epoch; `level` is the
 * minimum level. With the format `json`, each line is one JSON object. Its first key is `event` if the fields contain
 * that key.
 */
export function createLog(options: {
  format: LogFormat;
  level: LogLevel;
  now: () => number;
  write: (line: string) => void;
}): Log {
  const { format, now, write } = options;
  const at = (level: LogLevel) => (fields: object, message: string) => {
    if (levels.indexOf(level) < levels.indexOf(options.level)) return;
    const printable = Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, printableValue(value)]));
    const time = new Date(now()).toISOString();
    write(
      format === 'json'
        ? `${visibleJson(JSON.stringify({ ...('event' in printable && { event: printable.event }), time, level, message, ...printable }))}\n`
        : `${time} ${level.toUpperCase().padEnd(5)} ${visibleLine(message)}${textFields(printable)}\n`,
    );
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

function printableValue(value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  const code = (value as NodeJS.ErrnoException).code;
  return code === undefined || value.message.includes(code) ? value.message : `${value.message} (${code})`;
}

const textFields = (fields: Record<string, unknown>): string =>
  Object.entries(fields)
    .filter(([key, value]) => key !== 'event' && value !== undefined)
    .map(
      ([key, value]) =>
        ` ${key}=${typeof value === 'string' && /^[\w.:/@-]+$/.test(value) ? value : visibleLine(JSON.stringify(value))}`,
    )
    .join('');
