"""For a gunicorn of your own, without the supervisor of `magazin serve`:

gunicorn -c etc/gunicorn.conf.py 'cli.wsgi:application()'

The settings are Magazin's (MAGAZIN_CONFIG, MAGAZIN_DATA, MAGAZIN_SERVER_…). Run `magazin worker` beside it.
"""

from cli import front, logs, sources

settings = sources.load()
logs.configure(settings.log)
bind = [str(settings.server.listen)]
globals().update(front.options(settings))
