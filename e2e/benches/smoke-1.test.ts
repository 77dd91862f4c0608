import { runsInSmokeForm } from './smoke.ts';

runsInSmokeForm(0);
