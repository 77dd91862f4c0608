import { useUrlState } from '../../parts/url-state.ts';
import { monthOf, monthText } from './month.ts';

/**
 * Returns the month that the calendar shows. The URL stores it.
 * @param now Unix milliseconds; its month is the default
 */
export function useShownMonth(now: number) {
  const today = new Date(now);
  const [name, setName] = useUrlState('month', '');
  const { year, month } = monthOf(name) ?? { year: today.getFullYear(), month: today.getMonth() };
  return {
    ...{ year, month },
    /** @param months number of months to move; negative moves back */
    move: (months: number) => setName(monthText(year, month, months)),
    showToday: () => setName(''),
  };
}
