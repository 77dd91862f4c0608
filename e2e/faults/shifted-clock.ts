// Shifts the wall clock of the process that loads it by the milliseconds in the file SHIFTED_CLOCK, which may change.
import { readFileSync } from 'node:fs';

const file = process.env.SHIFTED_CLOCK;
const realNow = Date.now.bind(Date);
const lookMs = 100;
let shift = 0;

if (file !== undefined) {
  const look = () => {
    try {
      shift = Number(readFileSync(file, 'utf8')) || 0;
    } catch {
      shift = 0;
    }
  };
  look();
  setInterval(look, lookMs).unref();
  const shifted: DateConstructor = new Proxy(Date, {
    construct: (target, values, self): object =>
      Reflect.construct(target, values.length === 0 ? [realNow() + shift] : values, self === shifted ? target : self),
  });
  shifted.now = () => realNow() + shift;
  globalThis.Date = shifted;
}
