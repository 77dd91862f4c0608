import { runsInSmokeForm } from './smoke.ts';

runsInSmokeForm(2);
