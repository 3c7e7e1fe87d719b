"""The HTTP front end of Linnet.

It translates requests of the HTTP APIs that programs already speak (a *face* each: LibreTranslate,
DeepL, …) into calls of linnet-server, and serves a web page. It keeps no model and no queue: the
server batches, limits and schedules, and the caller's token is passed on to it.
"""
